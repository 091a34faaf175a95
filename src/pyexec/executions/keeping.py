"""What is told about a run of inline code beside its source: the arguments of the call, without what is secret."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.text import legible
from pyexec.environments.credentials import masked
from pyexec.executions.afterwards import Afterwards
from pyexec.scripts.autosaved import AutosavedScripts

_log = logging.getLogger(__name__)

HIDDEN = "***"
LONGEST_TEXT = 1000
MOST_ITEMS = 100


@dataclass(frozen=True, slots=True)
class _Run:
    execution: Execution
    request: ExecutionRequest
    code: bytes


class Autosaving:
    """Has inline code kept that has begun to run, with nobody waiting for it."""

    def __init__(self, autosaved: AutosavedScripts, afterwards: Afterwards) -> None:
        self._autosaved = autosaved
        self._afterwards = afterwards

    def keep_soon(self, execution: Execution, request: ExecutionRequest, code: bytes) -> None:
        """Have the code of a run kept; that it cannot be is no reason for anything but a line in the log."""
        if self._autosaved.keeps_any:
            self._afterwards.gather(self._keep, _Run(execution, request, code))

    def _keep(self, runs: list[_Run]) -> None:
        of_source: dict[tuple[str, bytes], list[_Run]] = {}
        for run in runs:  # The source that ran last is kept last: they are listed in that order.
            key = (run.execution.owner, run.code)
            of_source[key] = [*of_source.pop(key, []), run]
        for (owner, code), those in of_source.items():
            try:
                self._autosaved.keep(owner, code, *map(_told, those))
            except OSError as error:
                for run in those:
                    _log.warning("the code of job %s could not be autosaved: %s", run.execution.id, error)


def _told(run: _Run) -> dict[str, object]:
    execution = run.execution
    return {
        "job_id": execution.id,
        "at": execution.created_at,
        "kind": execution.kind,
        "arguments": told_arguments(execution, run.request),
    }


def told_arguments(execution: Execution, request: ExecutionRequest) -> dict[str, object]:
    """Return the arguments that were given, by the names that tools have for them.

    Of `env_vars` there are the names, of `stdin` that there was some; credentials in URLs are masked, and what is
    long is cut.
    """
    told: dict[str, object] = {
        "directory": execution.directory,
        "args": _texts(request.args),
        "use_uv": request.use_uv,
        "python_version": request.python_version,
        "dependencies": None if request.dependencies is None else _texts(request.dependencies),
        "constraints": _texts(request.constraints),
        "index_url": None if request.index_url is None else _text(request.index_url),
        "environment": request.environment,
        "timeout_seconds": request.timeout_seconds or None,
        "env_vars": {_text(name): HIDDEN for name in list(request.env_vars)[:MOST_ITEMS]},
        "env_file": None if request.env_file is None else _text(request.env_file),
        "stdin": None if request.stdin is None else HIDDEN,
        "job_label": execution.label,
        "request_id": request.request_id,
    }
    return {name: value for name, value in told.items() if value is not None and value not in ([], {})}


def _texts(texts: Iterable[str]) -> list[str]:
    items = list(texts)
    more = [f"... {len(items) - MOST_ITEMS} more"] if len(items) > MOST_ITEMS else []
    return [*map(_text, items[:MOST_ITEMS]), *more]


def _text(text: str) -> str:
    whole = legible(masked(text))
    return whole if len(whole) <= LONGEST_TEXT else f"{whole[:LONGEST_TEXT]}..."
