from pathlib import Path

import pytest

from pyexec.domain.errors import InterpreterNotFoundError, InvalidArgumentError, NotFoundError
from pyexec.environments.interpreters import Interpreter, InterpreterFinder
from tests.unit.environments.conftest import Machine, Version


@pytest.fixture
def three(machine: Machine) -> Machine:
    machine.python("path/python3", (3, 11, 7))
    machine.python("home/.pyenv/versions/3.13.0/bin/python", (3, 13, 0))
    machine.python("home/.pyenv/versions/3.12.1/bin/python", (3, 12, 1))
    machine.path("path")
    return machine


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (None, (3, 11, 7)),
        ("3.11", (3, 11, 7)),
        ("3.12", (3, 12, 1)),
        ("3.12.1", (3, 12, 1)),
        (">=3.11", (3, 13, 0)),
        (">=3.8,<3.13", (3, 12, 1)),
        ("==3.12.*", (3, 12, 1)),
    ],
)
def test_a_request_finds_what_fits(three: Machine, request_: str | None, version: tuple[int, int, int]) -> None:
    assert (three.finder().find(request_)).version == version


def test_a_version_is_taken_from_path_even_when_a_newer_patch_is_elsewhere(three: Machine) -> None:
    mine = three.python("path/python3.13", (3, 13, 0))
    three.python("home/.local/share/uv/python/a/bin/python3", (3, 13, 9))
    assert three.finder().find("3.13") == Interpreter(path=mine, version=(3, 13, 0))
    assert (three.finder().find(">=3.13")).version == (3, 13, 9)


def test_of_equal_versions_the_one_on_path_is_taken(three: Machine) -> None:
    mine = three.python("path/python3.13", (3, 13, 0))
    assert (three.finder().find(">=3.12")).path == mine


def test_an_absolute_path_is_a_request_too(three: Machine) -> None:
    path = three.python("elsewhere/python", (3, 10, 1))
    assert three.finder().find(f" {path} ") == Interpreter(path=path, version=(3, 10, 1))


def test_a_path_with_nothing_there_is_not_found(three: Machine) -> None:
    with pytest.raises(NotFoundError, match="There is no interpreter at /gone/python"):
        three.finder().find("/gone/python")


def test_a_path_that_is_no_python_is_refused(three: Machine) -> None:
    path = three.program("elsewhere/ls")
    with pytest.raises(InvalidArgumentError, match="is not a Python that works"):
        three.finder().find(str(path))


def test_a_request_of_another_form_is_refused(three: Machine) -> None:
    with pytest.raises(InvalidArgumentError, match="python_version is 'newest'"):
        three.finder().find("newest")


def test_when_none_fits_the_message_lists_what_is_here_and_the_hint_says_how_to_get_it(
    three: Machine,
) -> None:
    with pytest.raises(InterpreterNotFoundError) as caught:
        three.finder().find("3.14")
    assert (caught.value.message, caught.value.hint) == (
        "No Python on this machine fits '3.14'; here are 3.11.7, 3.12.1, 3.13.0.",
        "Install one with `uv python install 3.14`.",
    )


def test_the_hint_quotes_a_range_for_the_shell(three: Machine) -> None:
    with pytest.raises(InterpreterNotFoundError) as caught:
        three.finder().find(">=3.14")
    assert caught.value.hint == "Install one with `uv python install '>=3.14'`."


def test_there_is_no_hint_for_a_version_that_cannot_be(three: Machine) -> None:
    with pytest.raises(InterpreterNotFoundError) as caught:
        three.finder().find(">=3.99")
    assert caught.value.hint is None


def test_a_machine_without_python_says_so(machine: Machine) -> None:
    for look in (lambda: machine.finder().find(None), machine.finder().first_on_path):
        with pytest.raises(InterpreterNotFoundError, match=r"fits '>=3\.8'; there is none that works\."):
            look()


def test_broken_and_old_interpreters_are_skipped(machine: Machine) -> None:
    machine.python("a/python3", None)
    machine.python("b/python", (2, 7, 18))
    good = machine.python("c/python3", (3, 9, 1))
    machine.path("a", "b", "c")
    finder = machine.finder()
    assert (finder.find(None)).path == good
    assert (finder.first_on_path()).path == good
    assert [one.version for one in finder.available()] == [(2, 7, 18), (3, 9, 1)]


def test_first_on_path_is_what_a_shell_would_start(three: Machine) -> None:
    three.python("path/python3.14", (3, 14, 0))
    assert (three.finder().first_on_path()).path == three.root / "path/python3"


def test_first_on_path_is_our_own_when_path_has_none(three: Machine) -> None:
    three.path("nowhere")
    own = three.python("own/bin/python", (3, 12, 9))
    assert (three.finder(own=own).first_on_path()).path == own


def test_any_python_will_do_before_our_own(three: Machine) -> None:
    three.path("nowhere")
    own = three.python("own/bin/python", (3, 12, 9))
    assert (three.finder(own=own).find(None)).version == (3, 13, 0)


def test_an_interpreter_is_started_once_and_then_remembered(three: Machine, tmp_path: Path) -> None:
    cache = tmp_path / "cache.json"
    first = three.finder(cache).available()
    assert three.finder(cache).available() == first
    assert sorted(three.probed) == sorted(one.path for one in first)


def test_an_interpreter_that_goes_away_while_we_look_is_no_error(three: Machine) -> None:
    gone = three.root / "home/.pyenv/versions/3.13.0/bin/python"

    def probe(path: Path) -> Version | None:
        gone.unlink(missing_ok=True)
        return three.probe(path)

    finder = InterpreterFinder(three.environ, None, probe)
    finder.find(None)
    assert gone not in [one.path for one in finder.available()]


def test_looking_for_any_python_starts_only_the_first(three: Machine) -> None:
    three.finder().find(None)
    assert three.probed == [three.root / "path/python3"]


def test_a_replaced_interpreter_is_asked_again(three: Machine, tmp_path: Path) -> None:
    finder = three.finder(tmp_path / "cache.json")
    assert (finder.find(None)).version == (3, 11, 7)
    path = three.python("path/python3", (3, 11, 11))
    path.write_text("another program\n", encoding="utf-8")
    assert (finder.find(None)).version == (3, 11, 11)
