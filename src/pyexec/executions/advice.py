"""One sentence for whoever reads a result that is not a success: what it means and what to do next."""

import re
from collections.abc import Mapping

from pyexec.domain.executions import Execution, Outcome, OutcomeKind

_NO_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'", re.MULTILINE)
_NO_STDIN = re.compile(r"^EOFError: EOF when reading a line", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):\n"
_ERROR_LINE = re.compile(r"^((?:\w[\w.]*)?(?:Error|Exception|Interrupt|Exit|Warning|Group)\b.*)$", re.MULTILINE)
_SUMMARY_LENGTH = 300
_STDERR_LOOKED_AT = 20_000

_ADVICE: Mapping[OutcomeKind, str] = {
    "timed_out": "Give a larger timeout_seconds, or 0 for none; all output up to then is kept.",
    "lost": "Run it again if it is safe to repeat; what it printed before is still readable.",
    "environment_failed": "The code was not run; see to its dependencies, the Python version or the network.",
    "start_failed": "The code was not run; check that the directory and the interpreter can be used.",
    "out_of_memory": "Use less memory at a time: smaller chunks, smaller types, or a larger limit.",
    "signalled": "SIGKILL from outside often means that memory ran out; try with less data.",
}


def error_of(execution: Execution, stderr: str) -> str | None:
    """Return in one sentence why an execution that has ended is not a success; None for one that is."""
    outcome = execution.outcome
    if outcome is None or execution.state == "completed":
        return None
    match outcome.kind:
        case "exited":
            return _of_exit(outcome, stderr)
        case "signalled":
            sent = f"It was ended by {outcome.signal} (exit code {outcome.exit_code}), which pyexec did not send."
            return f"{sent} {outcome.reason}" if outcome.reason else sent
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
    if outcome.kind == "exited":
        return _for_stderr(stderr) if outcome.exit_code else None
    if outcome.kind == "signalled" and outcome.signal != "SIGKILL":
        return None
    return _ADVICE.get(outcome.kind)


def _of_exit(outcome: Outcome, stderr: str) -> str:
    return _exception_line(stderr[-_STDERR_LOOKED_AT:]) or f"It exited with code {outcome.exit_code}."


def _exception_line(stderr: str) -> str | None:
    """Return the line that names the last exception: the first after a traceback's frames, which are indented."""
    _before, found, traceback = stderr.rpartition(_TRACEBACK)
    if found:
        for line in traceback.splitlines():
            if line and not line.startswith(" "):
                return line[:_SUMMARY_LENGTH]
    errors: list[str] = _ERROR_LINE.findall(stderr)  # A SyntaxError of the script itself has no traceback.
    return errors[-1][:_SUMMARY_LENGTH] if errors else None


def _for_stderr(stderr: str) -> str | None:
    missing = _NO_MODULE.search(stderr)
    if missing:
        return f"The module {missing[1]!r} is not there; name its distribution in dependencies."
    if _NO_STDIN.search(stderr):
        return "It asked for input, and no stdin was given; pass the text as stdin."
    return None
