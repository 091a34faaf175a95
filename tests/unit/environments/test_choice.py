import pytest

from pyexec.domain.errors import InterpreterNotFoundError, InvalidArgumentError
from pyexec.environments.choice import Choice, choose
from tests.unit.environments.conftest import Machine, Version

NEVER = {"UV_PYTHON_DOWNLOADS": "never"}


@pytest.fixture
def machine_of_three(machine: Machine) -> Machine:
    machine.python("path/python3", (3, 11, 7))
    machine.python("home/.pyenv/versions/3.13.0/bin/python", (3, 13, 0))
    machine.python("home/.pyenv/versions/3.12.1/bin/python", (3, 12, 1))
    machine.path("path")
    return machine


def chosen(
    machine: Machine,
    argument: str | None,
    requires: str | None,
    environ: dict[str, str] | None = None,
    *,
    otherwise: str | None = None,
) -> Choice:
    return choose(
        machine.finder(),
        NEVER if environ is None else environ,
        argument=argument,
        requires=requires,
        requires_in="the script's header",
        otherwise=otherwise,
    )


@pytest.mark.case("B029")
@pytest.mark.parametrize(
    ("argument", "requires", "version"),
    [
        (None, None, (3, 11, 7)),
        ("3.12", None, (3, 12, 1)),
        (None, ">=3.12", (3, 13, 0)),
        (None, "<3.13", (3, 12, 1)),
        ("3.12", ">=3.11", (3, 12, 1)),
        (">=3.8", "<3.12", (3, 11, 7)),
        (">=3.12", ">=3.8", (3, 13, 0)),
    ],
)
def test_argument_and_script_together_choose(
    machine_of_three: Machine, argument: str | None, requires: str | None, version: Version
) -> None:
    choice = chosen(machine_of_three, argument, requires)
    assert choice.interpreter is not None
    assert choice.interpreter.version == version
    assert choice.python == str(choice.interpreter.path)


@pytest.mark.case("B029")
@pytest.mark.parametrize(("argument", "requires"), [("3.11", ">=3.12"), ("3.9", ">=3.12"), (">=3.13", "<3.13")])
def test_an_argument_outside_of_what_the_script_requires_is_refused_with_both(
    machine_of_three: Machine, argument: str, requires: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        chosen(machine_of_three, argument, requires, {})
    assert caught.value.message == (
        f"python_version {argument} does not fit requires-python {requires!r} in the script's header."
    )


def test_a_path_outside_of_what_the_script_requires_is_refused_with_its_version(
    machine_of_three: Machine,
) -> None:
    path = str(machine_of_three.root / "path/python3")
    assert (chosen(machine_of_three, path, ">=3.11")).python == path
    with pytest.raises(InvalidArgumentError, match=r"\(Python 3\.11\.7\) does not fit requires-python '>=3\.12'"):
        chosen(machine_of_three, path, ">=3.12")


@pytest.mark.case("B029")
@pytest.mark.parametrize("environ", [{}, NEVER])
def test_a_range_no_python_can_be_in_is_an_error_before_anything_runs(
    machine_of_three: Machine, environ: dict[str, str]
) -> None:
    with pytest.raises(InterpreterNotFoundError, match=r"fits '>=3\.99'; here are 3\.11\.7, 3\.12\.1, 3\.13\.0"):
        chosen(machine_of_three, None, ">=3.99", environ)


@pytest.mark.parametrize(
    ("argument", "requires", "python"),
    [("3.14", None, "3.14"), (None, ">=3.14", ">=3.14"), ("3.14", ">=3.11", "==3.14.*,>=3.11")],
)
def test_what_is_not_here_is_left_to_uv_when_it_may_download(
    machine_of_three: Machine, argument: str | None, requires: str | None, python: str
) -> None:
    assert chosen(machine_of_three, argument, requires, {}) == Choice(python=python, interpreter=None)
    with pytest.raises(InterpreterNotFoundError):
        chosen(machine_of_three, argument, requires, NEVER)


def test_on_a_machine_without_python_uv_gets_one(machine: Machine) -> None:
    assert chosen(machine, None, None, {}) == Choice(python=">=3.8", interpreter=None)


def test_a_range_that_cannot_be_read_is_refused_with_its_place(machine_of_three: Machine) -> None:
    with pytest.raises(InvalidArgumentError, match=r"requires-python in the script's header is '\^3\.11'"):
        chosen(machine_of_three, None, "^3.11")


def test_when_nobody_asks_the_usual_version_is_used_if_it_is_here(machine_of_three: Machine) -> None:
    for otherwise, version in (("3.12", (3, 12, 1)), ("3.14", (3, 11, 7)), (None, (3, 11, 7))):
        choice = chosen(machine_of_three, None, None, otherwise=otherwise)
        assert choice.interpreter is not None
        assert choice.interpreter.version == version


@pytest.mark.parametrize(
    ("argument", "requires", "version"),
    [("3.11", None, (3, 11, 7)), (None, ">=3.11", (3, 13, 0)), (None, "<3.12", (3, 11, 7))],
)
def test_the_usual_version_gives_way_to_anybody_who_asks(
    machine_of_three: Machine, argument: str | None, requires: str | None, version: Version
) -> None:
    choice = chosen(machine_of_three, argument, requires, otherwise="3.12")
    assert choice.interpreter is not None
    assert choice.interpreter.version == version


def test_the_usual_version_is_never_downloaded_while_another_is_here(machine: Machine) -> None:
    machine.python("path/python3", (3, 11, 7))
    machine.path("path")
    assert (chosen(machine, None, None, {}, otherwise="3.13")).interpreter is not None
