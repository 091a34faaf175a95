"""Putting what is run into its place: inline code into the execution's folder, a tool of ours around a notebook."""

from dataclasses import dataclass
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError, PyexecError, StateUnusableError
from pyexec.domain.executions import ExecutionRequest, Harness
from pyexec.domain.text import legible
from pyexec.executions.programs import Program, read_program
from pyexec.executions.requests import CheckedRequest
from pyexec.sandbox.inline import leading_to
from pyexec.storage import artifacts

CODE = "code/script.py"
"""Where inline code lies in an execution's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """What is run, in its place: `script` is its path, None for a module, and for a cell that has no file yet."""

    script: Path | None
    program: Program
    harness: Harness | None


def place(folder: Path, checked: CheckedRequest, env: dict[str, str], most: int) -> Placed:
    """Make an execution's folder and put into it what belongs there; `env` gets the variables that lead to it.

    Of an archive at most so many bytes are unpacked.

    Raises:
        InvalidArgumentError: There is nothing that Python can run, or it cannot be run that way.
        StateUnusableError: The state folder cannot be written.
    """
    try:
        folder.mkdir(mode=0o700)
        script, program = _placed_source(folder, checked, most)
        harness = _combined(checked.request, program)
        if harness is not None or checked.request.sandboxed:
            env[artifacts.VARIABLE] = str(artifacts.make_artifacts_folder(folder))
    except OSError as error:
        raise _unreadable(checked, error) from error
    if script is not None and checked.script is None:
        env |= leading_to(script, harness.options if harness else (), checked.directory, env)
    return Placed(script=script, program=program, harness=harness)


def foreseen(checked: CheckedRequest) -> Placed:
    """Return what is run of a cell; nothing is made yet."""
    source = source_bytes(checked.request.script_content or "")
    return Placed(script=None, program=Program(header_source=source), harness=checked.request.harness)


def source_bytes(code: str) -> bytes:
    """Return the bytes of inline code."""
    return code.encode("utf-8", "surrogatepass")


def source_of(checked: CheckedRequest) -> str:
    """Return what is run, as the record tells it."""
    if checked.request.module is not None:
        return f"-m {checked.request.module}"
    return "inline" if checked.script is None else legible(str(checked.script))


def _placed_source(folder: Path, checked: CheckedRequest, most: int) -> tuple[Path | None, Program]:
    if checked.script is not None:
        return checked.script, read_program(checked.script, most)
    if checked.request.script_content is None:
        return None, Program()
    source = source_bytes(checked.request.script_content)
    script = folder / CODE
    script.parent.mkdir(mode=0o700)
    script.write_bytes(source)
    return script, Program(header_source=source)


def _combined(request: ExecutionRequest, program: Program) -> Harness | None:
    """Return what the program itself takes to run, or else what a tool wants around it; both it cannot be."""
    if program.harness is None:
        return request.harness
    if request.stdin is not None:
        raise InvalidArgumentError("stdin was given, and the cells of a notebook cannot read any.")
    if request.harness is not None:
        raise InvalidArgumentError(
            "A notebook cannot be measured or looked into while it runs: its cells run in a process of their own.",
            hint="Run a script instead: `jupyter nbconvert --to script` makes one of it.",
        )
    return program.harness


def _unreadable(checked: CheckedRequest, error: OSError) -> PyexecError:
    if checked.script is not None and error.filename == str(checked.script):
        return InvalidArgumentError(f"script_path {checked.script} cannot be read: {error.strerror}.")
    return StateUnusableError(f"The state folder cannot be written: {error.strerror}.")
