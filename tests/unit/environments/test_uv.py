from pathlib import Path

import pytest

from pyexec.domain.errors import UvNotFoundError
from pyexec.environments.uv import (
    find_uv,
    keeps_cache,
    may_download_python,
    offline,
    patience,
    resolve_command,
    run_command,
    warm_command,
)
from tests.unit.environments.conftest import Machine

UV = Path("/opt/uv")
PYTHON = "/usr/bin/python3"
LIST = Path("/run/resolved.txt")


def test_uv_is_looked_for_in_order(machine: Machine) -> None:
    places = ["named/uv", "path/uv", "own/bin/uv", "home/.local/bin/uv", "home/.cargo/bin/uv"]
    for place in places:
        machine.program(place)
    machine.program("home/.pyenv/shims/uv")
    machine.path("home/.pyenv/shims", "empty", "path")
    machine.environ["UV"] = str(machine.root / "named/uv")
    found: list[str] = []
    for _ in places:
        uv = find_uv(machine.environ, machine.root / "own")
        found.append(str(uv.relative_to(machine.root)))
        uv.unlink()
    assert found == places
    with pytest.raises(UvNotFoundError, match="uv is needed"):
        find_uv(machine.environ, machine.root / "own")


def test_a_uv_that_is_not_executable_or_not_absolute_does_not_count(machine: Machine) -> None:
    machine.program("path/uv").chmod(0o644)
    machine.path("path")
    with pytest.raises(UvNotFoundError) as caught:
        find_uv(machine.environ | {"UV": "uv"}, machine.root / "own")
    assert caught.value.hint is not None
    with pytest.raises(UvNotFoundError):
        find_uv({}, machine.root / "own")


def test_resolving_writes_a_plain_list_of_pins() -> None:
    command = resolve_command(
        UV, python=PYTHON, requirements_in=Path("/run/requirements.in"), output=LIST, options=["--index", "x"]
    )
    assert command == (
        *("/opt/uv", "pip", "compile", "--quiet", "--color", "never"),
        *("--no-header", "--no-annotate", "--no-universal", "--python", PYTHON),
        *("--output-file", "/run/resolved.txt", "--index", "x", "/run/requirements.in"),
    )


def test_a_run_with_packages_sees_these_only_and_asks_no_index() -> None:
    command = run_command(
        UV,
        python=PYTHON,
        script=Path("main.py"),
        args=["-x", "--", "a b"],
        requirements=LIST,
        options=["--index", "x"],
        offline=True,
    )
    assert command == (
        *("/opt/uv", "run", "--quiet", "--color", "never", "--no-project", "--no-env-file"),
        *("--python", PYTHON, "--isolated", "--with-requirements", "/run/resolved.txt", "--index", "x"),
        *("--offline", "--", "python", "main.py", "-x", "--", "a b"),
    )


def test_a_run_without_packages_reads_no_settings() -> None:
    command = run_command(UV, python=PYTHON, script=Path("main.py"), args=[], requirements=None, offline=True)
    assert command == (
        *("/opt/uv", "run", "--quiet", "--color", "never", "--no-project", "--no-env-file"),
        *("--python", PYTHON, "--no-config", "--", "python", "main.py"),
    )


def test_a_run_on_a_version_reads_settings_since_they_say_where_pythons_are() -> None:
    command = run_command(UV, python="3.14", script=Path("main.py"), args=[], requirements=None, isolated=True)
    assert "--no-config" not in command
    assert "--isolated" in command


def test_a_script_whose_name_looks_like_an_option_is_still_a_script() -> None:
    command = run_command(UV, python=PYTHON, script=Path("-c"), args=["print(1)"], requirements=None)
    assert command[-3:] == ("python", "./-c", "print(1)")


def test_warming_runs_nothing_of_the_users() -> None:
    command = warm_command(UV, python="3.14", requirements=None)
    assert command[command.index("--") + 1 : -1] == ("python", "-I", "-S", "-c")
    assert "--isolated" not in command


def test_a_second_try_offline_is_the_same_command_offline() -> None:
    resolve = resolve_command(UV, python=PYTHON, requirements_in=LIST, output=LIST)
    warm = warm_command(UV, python=PYTHON, requirements=LIST)
    assert offline(resolve)[:4] == ("/opt/uv", "pip", "compile", "--offline")
    assert offline(warm)[:3] == ("/opt/uv", "run", "--offline")
    assert [one for one in offline(warm) if one != "--offline"] == list(warm)


def test_what_the_user_set_about_waiting_counts() -> None:
    assert patience({}) == {"UV_HTTP_CONNECT_TIMEOUT": "3", "UV_HTTP_RETRIES": "2"}
    assert patience({"UV_HTTP_RETRIES": "9"}) == {"UV_HTTP_CONNECT_TIMEOUT": "3"}


@pytest.mark.parametrize(
    ("environ", "may"),
    [
        ({}, True),
        ({"UV_PYTHON_DOWNLOADS": ""}, True),
        ({"UV_PYTHON_DOWNLOADS": "automatic"}, True),
        ({"UV_PYTHON_DOWNLOADS": "manual"}, False),
        ({"UV_PYTHON_DOWNLOADS": "never"}, False),
        ({"UV_OFFLINE": "1"}, False),
    ],
)
def test_uv_may_download_a_python_unless_it_is_told_not_to(environ: dict[str, str], *, may: bool) -> None:
    assert may_download_python(environ) is may


def test_the_cache_is_kept_unless_it_is_switched_off() -> None:
    assert keeps_cache({"UV_NO_CACHE": "0"})
    assert not keeps_cache({"UV_NO_CACHE": "true"})
