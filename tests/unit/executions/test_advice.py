import pytest

from pyexec.domain.executions import OUTCOME_KINDS, Outcome, OutcomeKind
from pyexec.executions.advice import advice_for, error_of
from tests.helpers.records import execution

TRACEBACK = """Traceback (most recent call last):
  File "script.py", line 2, in <module>
    1/0
    ~^~
ZeroDivisionError: division by zero
"""


def sentences(outcome: Outcome, stderr: str = "") -> tuple[str | None, str | None]:
    record = execution(state=outcome.state, outcome=outcome)
    return error_of(record, stderr), advice_for(record, stderr)


def ended(kind: OutcomeKind, **values: object) -> Outcome:
    return Outcome(kind=kind, ended_at=1.0, **values)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("state", ["pending", "running"])
def test_what_has_not_ended_has_no_error(state: str) -> None:
    record = execution(state=state)

    assert (error_of(record, TRACEBACK), advice_for(record, TRACEBACK)) == (None, None)


def test_a_success_has_no_error_whatever_it_wrote_to_stderr() -> None:
    assert sentences(ended("exited", exit_code=0), TRACEBACK) == (None, None)


@pytest.mark.parametrize(
    ("stderr", "error"),
    [
        (TRACEBACK, "ZeroDivisionError: division by zero"),
        ("KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("mypackage.errors.TooBadError: no\n", "mypackage.errors.TooBadError: no"),
        ("ValueError: first\n\nDuring handling …\n\nTypeError: second\n", "TypeError: second"),
        ("usage: prog [-h]\n", "It exited with code 2."),
        ("", "It exited with code 2."),
    ],
)
def test_an_exit_is_explained_by_the_last_exception(stderr: str, error: str) -> None:
    assert sentences(ended("exited", exit_code=2), stderr)[0] == error


def test_a_long_exception_is_cut() -> None:
    error, _advice = sentences(ended("exited", exit_code=1), "ValueError: " + "x" * 5000)

    assert error is not None
    assert len(error) == 300


def missing(words: str) -> str | None:
    """Return the advice after a ModuleNotFoundError with these words."""
    return sentences(ended("exited", exit_code=1), f"{TRACEBACK}ModuleNotFoundError: No module named {words}\n")[1]


@pytest.mark.parametrize(
    ("module", "distribution"),
    [("cv2", "opencv-python"), ("sklearn.svm", "scikit-learn"), ("pkg_resources", "setuptools<82")],
)
def test_a_missing_module_is_told_with_the_distribution_it_comes_in(module: str, distribution: str) -> None:
    assert (
        missing(f"'{module}'")
        == f"The module '{module}' comes in the distribution '{distribution}'; add it to dependencies."
    )


@pytest.mark.parametrize("module", ["foo", "foo.bar", "google.cloud", "distutils.msvccompiler"])
def test_the_distribution_of_an_unknown_module_is_left_to_the_caller(module: str) -> None:
    assert missing(f"'{module}'") == (
        f"The module '{module}' is not there; name the distribution that has it in dependencies "
        "(imports are never guessed into installs)."
    )


def test_a_module_that_left_the_standard_library_is_told_with_what_replaces_it() -> None:
    assert missing("'distutils'") == (
        "The module 'distutils' left the standard library in Python 3.12; "
        "add 'setuptools' to dependencies or choose an older python_version."
    )


def test_a_module_that_left_without_a_replacement_needs_an_older_python() -> None:
    assert (
        missing("'imp'") == "The module 'imp' left the standard library in Python 3.12; choose an older python_version."
    )


@pytest.mark.parametrize("package", ["sklearn", "pandas", "json"])
def test_a_package_hidden_by_a_file_of_its_name_is_told(package: str) -> None:
    words = f"'{package}.foo'; '{package}' is not a package"

    assert missing(words) == f"A file named {package}.py hides the package '{package}'; rename it."


@pytest.mark.parametrize("module", ["datetime", "time", "os.path", "matplotlib.pyplot"])
def test_what_never_was_a_package_is_not_said_to_be_hidden(module: str) -> None:
    assert missing(f"'{module}.foo'; '{module}' is not a package") is None


@pytest.mark.case("B001")
def test_input_that_nobody_gave_is_told() -> None:
    error, advice = sentences(ended("exited", exit_code=1), "EOFError: EOF when reading a line\n")

    assert error == "EOFError: EOF when reading a line"
    assert advice == "It asked for input, and no stdin was given; pass the text as stdin."


def test_an_ordinary_exception_needs_no_advice() -> None:
    assert sentences(ended("exited", exit_code=1), TRACEBACK)[1] is None


def test_a_signal_that_we_did_not_send_is_named_with_its_code() -> None:
    error, advice = sentences(ended("signalled", exit_code=139, signal="SIGSEGV"))

    assert error == "It was ended by SIGSEGV (exit code 139), which pyexec did not send."
    assert advice is None


def test_a_kill_from_outside_may_be_memory() -> None:
    error, advice = sentences(ended("signalled", exit_code=137, signal="SIGKILL", reason="Memory ran out meanwhile."))

    assert error is not None
    assert error.endswith("Memory ran out meanwhile.")
    assert advice is not None
    assert "memory" in advice


@pytest.mark.parametrize("kind", ["timed_out", "cancelled"])
def test_who_ended_it_and_how_is_said(kind: OutcomeKind) -> None:
    reason = "It ran longer than 1 s."

    assert sentences(ended(kind, reason=reason, stopped_by="SIGTERM"))[0] == f"{reason} It was ended with SIGTERM."
    assert sentences(ended(kind, reason=reason))[0] == reason


@pytest.mark.parametrize("kind", ["start_failed", "environment_failed", "lost"])
def test_what_never_ran_to_its_end_gives_its_reason(kind: OutcomeKind) -> None:
    assert sentences(ended(kind, reason="Because."))[0] == "Because."


@pytest.mark.parametrize(
    "kind", [kind for kind in OUTCOME_KINDS if kind not in ("exited", "returned", "cancelled", "signalled")]
)
def test_what_did_not_end_by_itself_comes_with_advice(kind: OutcomeKind) -> None:
    assert sentences(ended(kind))[1] is not None


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("/usr/bin/python3: No module named cv2", "comes in the distribution 'opencv-python'"),
        (
            "/usr/bin/python3: No module named a.__main__; 'a' is a package and cannot be directly executed",
            "'a' has no",
        ),
        (
            "C:\\py: Error while finding module specification for 'a.b' (ModuleNotFoundError: No module named 'a')",
            "The module 'a' is not there",
        ),
    ],
)
def test_a_module_that_python_cannot_start_is_told_of_as_python_tells_it(line: str, advice: str) -> None:
    outcome = ended("exited", exit_code=1)
    record = execution(state="failed", outcome=outcome, source="-m a")
    told = advice_for(record, f"noise\n{line}\n")
    assert told is not None
    assert advice in told
    assert error_of(record, f"noise\n{line}\n") == line.partition(": ")[2]
    assert error_of(record, f"{line}\nValueError: x") == "ValueError: x"
    assert error_of(execution(state="failed", outcome=outcome), line) != line.partition(": ")[2]


def test_a_session_is_given_a_missing_module_by_its_tool_and_a_call_by_its_argument() -> None:
    outcome = ended("exited", exit_code=1)
    stderr = "ModuleNotFoundError: No module named 'cv2'"
    told = advice_for(execution(state="failed", outcome=outcome, session="s1"), stderr)
    assert told == (
        "The module 'cv2' comes in the distribution 'opencv-python'; add it to dependencies, or give it to the session "
        "with install_packages."
    )
    told = advice_for(execution(state="failed", outcome=outcome), stderr)
    assert told == "The module 'cv2' comes in the distribution 'opencv-python'; add it to dependencies."


def test_a_cell_that_misses_pip_is_told_how_packages_come_to_it() -> None:
    outcome = ended("exited", exit_code=1)
    record = execution(state="failed", outcome=outcome, kind="cell")
    told = advice_for(record, "ModuleNotFoundError: No module named 'pip'")
    assert told == "Packages are not installed by the code itself; name them in dependencies."
