import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyexec.observability.logs import Masker, configure_logging, take_over


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    root = logging.getLogger()
    ours = logging.getLogger("pyexec")
    before = (root.handlers[:], root.level, ours.level)
    yield
    for handler in root.handlers:
        if handler not in before[0]:
            handler.close()
    root.handlers[:], root.level, ours.level = before


def entries(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "pyexec.log").read_bytes().split(b"\n") if line]


# -- secrets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["GITHUB_TOKEN", "token", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "PASSWD", "OPENAI_API_KEY", "APIKEY", "MY_AUTH"],
)
def test_the_value_of_a_secret_variable_is_masked(name: str) -> None:
    assert (
        Masker({name: "hunter2hunter2"}).mask("with hunter2hunter2, twice: hunter2hunter2") == "with ****, twice: ****"
    )


def test_the_value_of_any_other_variable_is_not() -> None:
    assert Masker({"EDITOR": "emacsclient"}).mask("run emacsclient") == "run emacsclient"


def test_whom_we_trust_is_no_secret_but_the_secret_for_them_is() -> None:
    masker = Masker({"PYEXEC_AUTH_ISSUERS": "https://id.example", "PYEXEC_AUTH_INTROSPECTION_SECRET": "hunter2hunter2"})
    assert masker.mask("https://id.example hunter2hunter2") == "https://id.example ****"


def test_a_short_value_is_not_taken_for_a_secret() -> None:
    assert Masker({"TOKEN": "on"}).mask("on and on") == "on and on"


def test_a_secret_that_contains_another_is_masked_whole() -> None:
    masker = Masker({"A_TOKEN": "secret", "B_TOKEN": "secret-and-more"})

    assert masker.mask("x secret-and-more y secret z") == "x **** y **** z"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://ann:pa55@host/x", "https://****@host/x"),
        ("https://tok3n@host", "https://****@host"),
        ("see postgres+psycopg://u:p@db:5432/x now", "see postgres+psycopg://****@db:5432/x now"),
        ("https://ann:p@ss@host/x", "https://****@host/x"),
        ("https://host/path@1.0", "https://host/path@1.0"),
        ("mail ann@host", "mail ann@host"),
    ],
)
def test_credentials_in_urls_are_masked(text: str, masked: str) -> None:
    assert Masker({}).mask(text) == masked


@given(st.text(min_size=6, max_size=30), st.text(max_size=10), st.text(max_size=10))
def test_no_secret_comes_through_whatever_is_in_it(secret: str, before: str, after: str) -> None:
    masked = Masker({"TOKEN": secret}).mask(before + secret + after)

    assert secret not in masked or secret in "****"


@pytest.mark.parametrize(
    "secret",
    ['quo"ted-secret', "back\\slash-secret", "two\nlines-of-secret", "tab\tsecret", "sécret-clé", "\x1bsecret"],
)
def test_a_secret_that_json_writes_differently_is_masked_in_the_file_too(tmp_path: Path, secret: str) -> None:
    configure_logging("info", tmp_path, {"MY_SECRET": secret})

    logging.getLogger("pyexec.test").warning("with %s inside", secret)

    (entry,) = entries(tmp_path)
    assert entry["message"] == "with **** inside"


def test_a_secret_in_a_traceback_is_masked(tmp_path: Path) -> None:
    configure_logging("info", tmp_path, {"MY_SECRET": "hunter2hunter2"})
    try:
        int("hunter2hunter2")
    except ValueError:
        logging.getLogger("pyexec.test").exception("failed")

    (entry,) = entries(tmp_path)
    assert "ValueError: invalid literal for int() with base 10: '****'" in str(entry["exception"])


# -- where logs go --------------------------------------------------------------------------------------------------


def test_an_entry_in_the_file_says_when_who_and_what(tmp_path: Path) -> None:
    configure_logging("info", tmp_path / "logs", {})

    logging.getLogger("pyexec.some.where").info("grüße %s", "\u2028")

    (entry,) = entries(tmp_path / "logs")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(entry.pop("time")))
    assert isinstance(entry.pop("pid"), int)
    assert entry == {"level": "info", "logger": "pyexec.some.where", "message": "grüße \u2028"}


def test_text_that_utf_8_cannot_write_is_logged_all_the_same(tmp_path: Path) -> None:
    configure_logging("info", tmp_path, {})

    logging.getLogger("pyexec.test").info("in %s", "/tmp/\udcff")

    (entry,) = entries(tmp_path)
    assert str(entry["message"]).startswith("in /tmp/")


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    configure_logging("info", tmp_path / "logs", {})

    assert (tmp_path / "logs" / "pyexec.log").stat().st_mode & 0o077 == 0
    assert (tmp_path / "logs").stat().st_mode & 0o077 == 0


def test_people_see_short_lines_on_stderr_and_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", None, {"MY_SECRET": "hunter2hunter2"})

    logging.getLogger("pyexec.test").warning("careful: hunter2hunter2")

    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "WARNING pyexec.test: careful: ****\n")


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        ("debug", ["debug", "info", "warning", "error", "other warning"]),
        ("info", ["info", "warning", "error", "other warning"]),
        ("warning", ["warning", "error", "other warning"]),
        ("error", ["error", "other warning"]),
    ],
)
def test_the_level_decides_what_is_logged(tmp_path: Path, level: str, seen: list[str]) -> None:
    configure_logging(level, tmp_path, {})
    ours, other = logging.getLogger("pyexec.test"), logging.getLogger("another.library")

    ours.debug("debug")
    ours.info("info")
    ours.warning("warning")
    ours.error("error")
    other.debug("other debug")
    other.warning("other warning")

    assert [entry["message"] for entry in entries(tmp_path)] == seen


def test_a_folder_that_cannot_be_written_is_said_once_and_done_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    configure_logging("info", tmp_path / "file" / "logs", {})

    logging.getLogger("pyexec.test").warning("still here")

    first, second = capsys.readouterr().err.splitlines()
    assert "no log file in" in first
    assert second == "WARNING pyexec.test: still here"


def test_a_file_that_another_server_rotated_away_is_opened_anew(tmp_path: Path) -> None:
    configure_logging("info", tmp_path, {})
    log = logging.getLogger("pyexec.test")

    log.info("before")
    (tmp_path / "pyexec.log").rename(tmp_path / "pyexec.log.1")
    log.info("after")

    assert [entry["message"] for entry in entries(tmp_path)] == ["after"]


def test_a_library_with_handlers_of_its_own_logs_the_way_we_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = logging.getLogger("a.loud.library")
    library.addHandler(logging.StreamHandler(sys.stdout))
    library.propagate = False
    configure_logging("info", tmp_path, {})

    take_over("a.loud.library")
    library.warning("hello")

    assert [entry["logger"] for entry in entries(tmp_path)] == ["a.loud.library"]
    assert capsys.readouterr().out == ""
