"""One sentence for whoever reads a result that is not a success: what it means and what to do next."""

import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec

from pyexec.domain.executions import Execution, Outcome, OutcomeKind
from pyexec.environments.distributions import REMOVED, distribution_of

_NO_MODULE = re.compile(
    r"^ModuleNotFoundError: No module named '([\w.]+)'(?:; '([\w.]+)' is not a package)?", re.MULTILINE
)
# What Python itself says when there is nothing for its -m.
_NOTHING_TO_RUN = re.compile(
    r"^\S.*: (No module named ([\w.]+)(?:; '([\w.]+)' is a package and cannot be directly executed)?"
    r"|Error while finding module specification for .* \(\w+: No module named '([\w.]+)'.*\))$"
)
_NO_STDIN = re.compile(r"^EOFError: EOF when reading a line", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):\n"
_ERROR_LINE = re.compile(r"^((?:\w[\w.]*)?(?:Error|Exception|Interrupt|Exit|Warning|Group)\b.*)$", re.MULTILINE)
_CELL = "cell"
_INSTALLERS = frozenset({"conda", "ensurepip", "pip", "uv"})
_SUMMARY_LENGTH = 300
_STDERR_LOOKED_AT = 20_000

_ADVICE: Mapping[OutcomeKind, str] = {
    "timed_out": "Give a larger timeout_seconds, or 0 for none; all output up to then is kept.",
    "lost": "Run it again if it is safe to repeat; what it printed before is still readable.",
    "environment_failed": "The code was not run; see to its dependencies, the Python version or the network.",
    "start_failed": "The code was not run; check that the directory and the interpreter can be used.",
    "out_of_memory": "Use less memory at a time: smaller chunks, smaller types, or a larger limit.",
    "raised": "Its traceback is what py_job_status shows as stderr.",
    "signalled": "SIGKILL from outside often means that memory ran out; try with less data.",
}


def error_of(execution: Execution, stderr: str) -> str | None:
    """Return in one sentence why an execution that has ended is not a success; None for one that is."""
    outcome = execution.outcome
    if outcome is None or execution.state == "completed":
        return None
    match outcome.kind:
        case "exited":
            found = _not_to_run(execution, stderr)
            said = found[1] if found else _of_exit(outcome, stderr)
            return f"{said} {outcome.reason}" if outcome.reason else said
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
        found = _not_to_run(execution, stderr)
        if found:
            return _for_package(found[3]) if found[3] else _for_missing(found[2] or found[4], execution)
        return _for_stderr(stderr, execution) if outcome.exit_code else None
    if outcome.kind == "signalled" and outcome.signal != "SIGKILL":
        return None
    return _ADVICE.get(outcome.kind)


def _not_to_run(execution: Execution, stderr: str) -> re.Match[str] | None:
    """Tell whether a module could not be started at all; the module's own failures are read like any other."""
    if not execution.source.startswith("-m "):
        return None
    return _NOTHING_TO_RUN.match(stderr.rstrip().rpartition("\n")[2])


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


def _for_stderr(stderr: str, execution: Execution) -> str | None:
    missing = _NO_MODULE.search(stderr)
    if missing:
        return _for_no_package(missing[2]) if missing[2] else _for_missing(missing[1], execution)
    if _NO_STDIN.search(stderr):
        return "It asked for input, and no stdin was given; pass the text as stdin."
    return None


def _for_missing(module: str, execution: Execution) -> str:
    # What stays in a session is given packages without a new start.
    add = "add it to dependencies, or give it to the session with install_packages"
    add = add if execution.session is not None else "add it to dependencies"
    if execution.kind == _CELL and module.partition(".")[0] in _INSTALLERS:
        where = ", or give them to the session with install_packages" if execution.session is not None else ""
        return f"Packages are not installed by the code itself; name them in dependencies{where}."
    if module in REMOVED:
        version, replacement = REMOVED[module]
        also = f"add {replacement!r} to dependencies or " if replacement else ""
        return (
            f"The module {module!r} left the standard library in Python {version}; {also}choose an older "
            "python_version."
        )
    distribution = distribution_of(module)
    if distribution:
        return f"The module {module!r} comes in the distribution {distribution!r}; {add}."
    return (
        f"The module {module!r} is not there; name the distribution that has it in dependencies"
        f"{' or install_packages' if execution.session is not None else ''} "
        "(imports are never guessed into installs)."
    )


def _for_package(name: str) -> str:
    return f"The package {name!r} has no __main__.py; name one of its modules."


def _for_no_package(name: str) -> str | None:
    """Advise about an import from below a module; no dependency helps there, for the module was found."""
    if "." in name or _is_plain_module_of_python(name):
        return None  # Nothing is hidden: it is a module of a package (`os.path`), or Python's own (`datetime`).
    return f"A file named {name}.py hides the package {name!r}; rename it."


def _is_plain_module_of_python(name: str) -> bool:
    if name not in sys.stdlib_module_names:
        return False
    spec = find_spec(name)  # Our Python's, which on such a thing differs little from the one that ran the code.
    return spec is not None and spec.submodule_search_locations is None
