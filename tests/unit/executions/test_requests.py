import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import InvalidArgumentError, NotFoundError, PyexecError
from pyexec.domain.executions import ExecutionRequest
from pyexec.domain.limits import ExecutionLimits
from pyexec.executions.requests import CheckedRequest, check_request

LIMITS = ExecutionLimits(source=100, arguments=20, timeout_ceiling=60.0)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "main.py").write_text("print(1)")
    (tmp_path / "main.py").write_text("print(2)")
    (tmp_path / ".env").write_text("A=1")
    return tmp_path


def check(base: Path, **values: Any) -> CheckedRequest:
    return check_request(ExecutionRequest(**values), LIMITS, base)


def refusal(base: Path, **values: Any) -> PyexecError:
    with pytest.raises(PyexecError) as found:
        check(base, **values)
    return found.value


def test_inline_code_runs_in_the_base_directory(base: Path) -> None:
    checked = check(base, script_content="1")

    assert (checked.directory, checked.script, checked.env_file) == (base, None, None)


def test_paths_count_from_the_directory_and_the_directory_from_the_base(base: Path) -> None:
    (base / "sub" / "my.env").touch()

    checked = check(base, directory="sub", script_path="main.py", env_file="my.env")

    assert checked.directory == base / "sub"
    assert checked.script == base / "sub" / "main.py"
    assert checked.env_file == base / "sub" / "my.env"


def test_absolute_paths_stay_as_they_are(base: Path) -> None:
    checked = check(base, directory=str(base / "sub"), script_path=str(base / "main.py"), env_file=str(base / ".env"))

    assert (checked.directory, checked.script, checked.env_file) == (base / "sub", base / "main.py", base / ".env")


def test_a_tilde_is_the_home_directory(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(base))

    checked = check(base / "sub", directory="~", script_path="~/sub/main.py")

    assert (checked.directory, checked.script) == (base, base / "sub" / "main.py")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "There is nothing to run."),
        ({"script_path": "main.py", "script_content": "1"}, "script_path and script_content were given together."),
        ({"script_path": "main.py", "module": "main"}, "script_path and module were given together."),
    ],
)
def test_exactly_one_source_must_be_given(base: Path, values: dict[str, str], message: str) -> None:
    found = refusal(base, **values)

    assert isinstance(found, InvalidArgumentError)
    assert found.sentence() == f"{message} Give exactly one of script_path, script_content, module."


@pytest.mark.parametrize(
    "values",
    [
        {"script_content": "1", "directory": "gone"},
        {"script_path": "gone.py"},
        {"script_content": "1", "env_file": "gone.env"},
        {"script_path": "~nobody-of-this-name/main.py"},
        {"script_content": "1", "directory": "~nobody-of-this-name"},
        {"script_content": "1", "env_file": "~nobody-of-this-name/.env"},
        {"script_path": "main.py/main.py"},
    ],
)
def test_what_does_not_exist_is_named(base: Path, values: dict[str, str]) -> None:
    found = refusal(base, **values)

    assert isinstance(found, NotFoundError)
    assert "does not exist" in found.message or "nobody-of-this-name" in found.message


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"script_content": "1", "directory": "main.py"}, "directory"),
        ({"script_content": "1", "env_file": "sub"}, "env_file"),
        ({"script_content": "1", "directory": ""}, "directory"),
        ({"script_path": ""}, "script_path"),
        ({"script_content": "1", "env_file": ""}, "env_file"),
        ({"script_path": "a\0b"}, "script_path"),
        ({"script_content": "1", "directory": "a\0b"}, "directory"),
        ({"script_content": "a\0b"}, "script_content"),
        ({"script_content": "x" * 101}, "script_content"),
        ({"script_content": "é" * 51}, "script_content"),
        ({"module": ""}, "module"),
        ({"module": "a..b"}, "module"),
        ({"module": "x-" * 500}, "module"),
        ({"module": "a\0b"}, "module"),
        ({"script_content": "1", "stdin": "x" * 101}, "stdin"),
        ({"script_content": "1", "timeout_seconds": -0.1}, "timeout_seconds"),
        ({"script_content": "1", "timeout_seconds": 60.1}, "timeout_seconds"),
        ({"script_content": "1", "timeout_seconds": math.nan}, "timeout_seconds"),
        ({"script_content": "1", "timeout_seconds": math.inf}, "timeout_seconds"),
        ({"script_content": "1", "args": ("a\0b",)}, "args"),
        ({"script_content": "1", "args": ("x" * 10, "y" * 10)}, "args"),
        ({"script_content": "1", "label": "x" * 201}, "job_label"),
        ({"script_content": "1", "request_id": "x" * 201}, "request_id"),
    ],
)
def test_a_value_that_is_not_allowed_is_named(base: Path, values: dict[str, Any], named: str) -> None:
    found = refusal(base, **values)

    assert isinstance(found, InvalidArgumentError)
    assert named in found.message
    assert len(found.sentence()) < 600


@pytest.mark.parametrize(
    "values",
    [
        {"script_content": "x" * 100},
        {"script_content": ""},
        {"script_content": "1", "stdin": "x" * 100},
        {"script_content": "1", "timeout_seconds": 0},
        {"script_content": "1", "timeout_seconds": 60},
        {"script_content": "1", "args": ("x" * 9, "y" * 9)},
        {"script_content": "1", "label": "x" * 200, "request_id": "y" * 200},
    ],
)
def test_the_largest_values_are_allowed(base: Path, values: dict[str, Any]) -> None:
    checked = check(base, **values)

    assert {name: getattr(checked.request, name) for name in values} == values


@pytest.mark.parametrize("name", ["script_path", "directory", "env_file"])
def test_code_given_where_a_path_belongs_is_refused_and_shown_shortened(base: Path, name: str) -> None:
    values = {name: "print(1)\n" * 1000} | ({} if name == "script_path" else {"script_content": "1"})

    found = refusal(base, **values)

    assert isinstance(found, InvalidArgumentError | NotFoundError)
    assert name in found.message
    assert len(found.message) < 1000


@pytest.mark.parametrize(
    "values",
    [
        {"script_content": "1", "args": ("\ud800",)},
        {"script_path": "\ud800.py"},
        {"script_content": "1", "directory": "\ud800"},
        {"script_content": "1", "env_file": "\ud800"},
        {"script_content": "1", "stdin": "\ud800"},
        {"script_content": "1", "label": "\ud800"},
        {"script_content": "1", "request_id": "\ud800"},
        {"script_content": "1", "env_vars": {"A": "\ud800"}},
    ],
    ids=lambda values: str(list(values)[-1]),
)
def test_a_lone_surrogate_is_refused_where_no_bytes_can_stand_for_it(base: Path, values: dict[str, Any]) -> None:
    assert isinstance(refusal(base, **values), InvalidArgumentError | NotFoundError)


def test_a_file_name_that_is_no_text_is_found(base: Path) -> None:
    (base / "\udcff.py").write_text("1")

    assert check(base, script_path="\udcff.py").script == base / "\udcff.py"


def test_a_folder_that_may_not_be_looked_into_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_path: Path, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", forbidden)

    assert isinstance(refusal(base, script_content="1", directory="sub"), InvalidArgumentError | NotFoundError)


def test_an_empty_request_id_is_none(base: Path) -> None:
    assert check(base, script_content="1", request_id="").request.request_id is None


def test_a_request_that_is_allowed_is_not_changed(base: Path) -> None:
    request = ExecutionRequest(
        script_content="1", args=("a",), label="x", request_id="r", stdin="s", env_vars={"A": "1"}
    )

    assert check_request(request, LIMITS, base).request == dataclasses.replace(request)
