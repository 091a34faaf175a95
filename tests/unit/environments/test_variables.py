from collections.abc import Callable
from pathlib import Path

import pytest

from pyexec.domain.errors import EnvFileError, InvalidArgumentError, NotFoundError
from pyexec.environments.variables import child_environment, read_env_file

Write = Callable[[str, str | bytes], Path]


@pytest.mark.requirement("example-10")
def test_an_env_file_may_have_comments_quotes_and_values_over_several_lines(write: Write) -> None:
    file = write(
        ".env",
        "# a comment\n\nPLAIN=value\nexport SHOWN = yes # why\nDOUBLE=\"a # b\\n\"\nSINGLE='it\\'s'\n"
        'MANY="one\ntwo"\nEMPTY=\nURL=https://x.org/?a=b#c\n',
    )
    assert read_env_file(file, {}) == {
        "PLAIN": "value",
        "SHOWN": "yes",
        "DOUBLE": "a # b\n",
        "SINGLE": "it's",
        "MANY": "one\ntwo",
        "EMPTY": "",
        "URL": "https://x.org/?a=b#c",
    }


@pytest.mark.case("B040")
def test_an_unquoted_value_may_have_spaces(write: Write) -> None:
    file = write(".env", "A=1\nSP=Default Org\nB=2")
    assert read_env_file(file, {}) == {"A": "1", "SP": "Default Org", "B": "2"}


def test_references_mean_what_is_above_then_the_base_then_the_default(write: Write) -> None:
    file = write(".env", "A=mine\nX=${A}-${B}-${C:-none}-${D}-$A\n")
    assert read_env_file(file, {"A": "base", "B": "base"})["X"] == "mine-base-none--$A"


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbfA=1\nB='x\ny'\n", b"A=1\r\nB='x\r\ny'\r\n", b"A=1\rB='x\ry'"], ids=["bom", "crlf", "cr"]
)
def test_a_byte_order_mark_and_other_line_ends_make_no_difference(write: Write, content: bytes) -> None:
    assert read_env_file(write(".env", content), {}) == {"A": "1", "B": "x\ny"}


def test_a_name_alone_sets_nothing(write: Write) -> None:
    assert read_env_file(write(".env", "A\nB=2\n"), {}) == {"B": "2"}


def test_the_last_of_two_values_counts(write: Write) -> None:
    assert read_env_file(write(".env", "A=1\nA=2\n"), {}) == {"A": "2"}


@pytest.mark.case("B040")
@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("A=1\nB C=SECRET\nD=3\n", 2),
        ('A=1\n\n# x\nB="SECRET\nC=3\n', 4),
        ("A='x\ny'\nB=\"x\" SECRET\n", 3),
        ("=SECRET\n", 1),
        ("A=1\nSECRET!\n", 2),
        ("--SECRET\n", 1),
        ("'A=B'=SECRET\n", 1),
        ("A=1\nB=SEC\0RET\n", 2),
    ],
    ids=["space", "open-quote", "after-quote", "no-name", "word", "option", "equals", "nul"],
)
def test_a_line_that_cannot_be_read_is_refused_with_file_and_line_and_without_what_is_in_it(
    write: Write, content: str, line: int
) -> None:
    file = write(".env", content)
    with pytest.raises(EnvFileError) as caught:
        read_env_file(file, {})
    assert caught.value.message.startswith(f"Line {line} of the env file {file} ")
    assert "SEC" not in caught.value.sentence()
    assert caught.value.details["line"] == line


def test_a_file_that_is_not_text_is_refused_with_its_line(write: Write) -> None:
    with pytest.raises(EnvFileError, match=r"Line 2 of the env file .* is not UTF-8"):
        read_env_file(write(".env", b"A=1\nB=\xe9\n"), {})


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=f"There is no env file at {tmp_path}/gone"):
        read_env_file(tmp_path / "gone", {})


def test_a_folder_is_no_env_file(tmp_path: Path) -> None:
    with pytest.raises(EnvFileError, match="is not a file"):
        read_env_file(tmp_path, {})


def test_a_path_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvFileError, match="cannot be opened"):
        read_env_file(tmp_path / ("x" * 300), {})


def test_a_huge_file_is_refused(write: Write) -> None:
    with pytest.raises(EnvFileError, match="larger than 1 MiB"):
        read_env_file(write(".env", b"#" * 1_048_577), {})


@pytest.mark.requirement("example-7")
def test_the_server_counts_least_then_the_file_then_the_call(write: Write) -> None:
    file = write(".env", "A=file\nB=file\nX=${PATH}\n")
    server = {"A": "server", "B": "server", "PATH": "/bin", "LANG": "C"}
    assert child_environment(server, file, {"B": "call"}) == {
        "A": "file",
        "B": "call",
        "X": "/bin",
        "PATH": "/bin",
        "LANG": "C",
    }


def test_our_own_settings_stay_ours_even_by_reference(write: Write) -> None:
    file = write(".env", "LEAK=${PYEXEC_CLIENT_SECRET}\n")
    assert child_environment({"PYEXEC_CLIENT_SECRET": "s3cret", "PYEXEC": "x"}, file, {}) == {
        "LEAK": "",
        "PYEXEC": "x",
    }


def test_what_concerns_the_start_of_the_server_is_not_handed_on() -> None:
    server = {
        "VIRTUAL_ENV": "/srv/venv",
        "VIRTUAL_ENV_PROMPT": "srv",
        "UV_PROJECT": "/srv",
        "UV_WORKING_DIR": "/srv",
        "UV_ENV_FILE": ".env",
        "UV_INDEX": "https://index.example",
    }
    assert child_environment(server, None, {}) == {"UV_INDEX": "https://index.example"}


def test_a_call_may_set_what_the_server_does_not_hand_on(write: Write) -> None:
    file = write(".env", "PYEXEC_HOME=/tmp/x\n")
    wanted = {"VIRTUAL_ENV": "/mine"}
    assert child_environment({}, file, wanted) == {"PYEXEC_HOME": "/tmp/x", "VIRTUAL_ENV": "/mine"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", "SECRET"),
        ("A=B", "SECRET"),
        ("A\0", "SECRET"),
        ("A", "SEC\0RET"),
        ("A", "SEC\ud800RET"),
        ("A", "SECRET" * 30_000),
    ],
    ids=["empty", "equals", "nul-name", "nul", "surrogate", "long"],
)
def test_a_variable_no_process_can_have_is_refused_by_name_never_by_value(name: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        child_environment({}, None, {"FINE": "1", name: value})
    assert f"The environment variable {name!r} in env_vars" in caught.value.message
    assert "SEC" not in caught.value.message


def test_bytes_that_came_from_the_system_may_go_back() -> None:
    assert child_environment({}, None, {"A": "\udce9t\udce9"}) == {"A": "\udce9t\udce9"}


def test_nothing_handed_in_is_changed() -> None:
    server, call = {"A": "1"}, {"B": "2"}
    child_environment(server, None, call)["C"] = "3"
    assert (server, call) == ({"A": "1"}, {"B": "2"})
