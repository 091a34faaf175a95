"""One sentence for whoever reads a result that is not a success: what it means and what to do next."""

import re

from pyexec.domain.executions import Execution, Outcome

_NO_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'", re.MULTILINE)
_NO_STDIN = re.compile(r"^EOFError: EOF when reading a line", re.MULTILINE)
_LAST_ERROR = re.compile(r"^(\w[\w.]*(?:Error|Exception|Interrupt|Exit|Warning|Group)\b.*)$", re.MULTILINE)
_SUMMARY_LENGTH = 300


def error_of(execution: Execution, stderr: str) -> str | None:
    """Return in one sentence why an execution that has ended is not a success; None for one that is."""
    outcome = execution.outcome
    if outcome is None or execution.state == "completed":
        return None
    match outcome.kind:
        case "exited":
            return _of_exit(outcome, stderr)
        case "signalled":
            meanwhile = f" {outcome.reason}" if outcome.reason else ""
            return f"It was ended by {outcome.signal} (exit code {outcome.exit_code}), which pyexec did not send.{meanwhile}"
        case "timed_out" | "cancelled":
            ended = f" It was ended with {outcome.stopped_by}." if outcome.stopped_by else ""
            return f"{outcome.reason or ''}{ended}".strip()
        case _:
            return outcome.reason


def advice_for(execution: Execution, stderr: str) -> str | None:
    """Return one sentence of advice, or None when there is nothing useful to say."""
    outcome = execution.outcome
    if outcome is None:
        return None
    match outcome.kind:
        case "timed_out":
            return "Give a larger timeout_seconds, or 0 for none; all output up to then is kept."
        case "lost":
            return "Run it again if it is safe to repeat; what it printed before is still readable."
        case "environment_failed":
            return "The code was not run; correct the dependencies or the Python version and try again."
        case "start_failed":
            return "The code was not run; check that the directory and the interpreter can be used."
        case "signalled" if outcome.signal == "SIGKILL":
            return "SIGKILL from outside often means that memory ran out; try with less data."
        case "exited" if outcome.exit_code != 0:
            return _for_stderr(stderr)
        case _:
            return None


def _of_exit(outcome: Outcome, stderr: str) -> str:
    errors = _LAST_ERROR.findall(stderr[-8000:])
    if errors:
        return errors[-1][:_SUMMARY_LENGTH]
    return f"It exited with code {outcome.exit_code}."


def _for_stderr(stderr: str) -> str | None:
    missing = _NO_MODULE.search(stderr)
    if missing:
        return f"The module {missing[1]!r} is not there; name its distribution in dependencies."
    if _NO_STDIN.search(stderr):
        return "It asked for input, and no stdin was given; pass the text as stdin."
    return None
