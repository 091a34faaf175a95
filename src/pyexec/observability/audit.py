"""The audit log: one JSON line for each thing that was run, never changed, never secret."""

import fcntl
import hashlib
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal

LARGEST_SOURCE = 64 * 1024 * 1024
_log = logging.getLogger(__name__)


class AuditLog:
    """Appends to a file: who, by which client, from where, which code by its hash, where it ran, outcome, resources.

    Not what the code is, nor its arguments, variables, input and output. Every line is one write, so several servers
    may share the file; who rotates it moves it away, and the next line begins a new one. A line that cannot be written
    is said in the log, and holds nothing up.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def submitted(self, principal: Principal, execution: Execution, request: ExecutionRequest) -> None:
        """Note that something was handed over."""
        self._write("submitted", execution.id, **_who(principal), **_what(request))

    def refused(self, principal: Principal, request: ExecutionRequest, code: str) -> None:
        """Note that something was refused."""
        self._write("refused", None, **_who(principal), **_what(request), error_code=code)

    def ended(self, execution: Execution) -> None:
        """Note how something ended."""
        outcome = execution.outcome
        told: dict[str, Any] = {"owner": execution.owner, "state": execution.state}
        if outcome is not None:
            told |= {
                "outcome": outcome.kind,
                "exit_code": outcome.exit_code,
                "signal": outcome.signal,
                "waited_seconds": _seconds(execution.created_at, execution.started_at),
                "ran_seconds": _seconds(execution.started_at, outcome.ended_at),
                "cpu_seconds": round(outcome.user_cpu_seconds + outcome.system_cpu_seconds, 3),
                "peak_rss_bytes": outcome.peak_rss_bytes,
                "stdout_bytes": outcome.stdout_bytes,
                "stderr_bytes": outcome.stderr_bytes,
            }
        self._write("ended", execution.id, **told)

    def user_ended(self, principal: Principal, **told: int | bool) -> None:
        """Note that an operator has ended what somebody had: how much of what has ended, and how much has not."""
        self._write("user_ended", None, **_who(principal), **told)

    def _write(self, event: str, execution_id: str | None, **told: Any) -> None:
        now = time.time()
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
        entry = {"time": when, "event": event, "execution_id": execution_id, **told}
        line = json.dumps({name: value for name, value in entry.items() if value is not None}, ensure_ascii=False)
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                os.write(fd, line.encode("utf-8", "replace") + b"\n")
            finally:
                os.close(fd)
        except OSError as error:
            _log.error("the audit log cannot be written: %s", error.strerror)


def _who(principal: Principal) -> dict[str, Any]:
    return {
        "issuer": principal.issuer,
        "subject": principal.subject,
        "client": principal.client or None,
        "address": principal.address or None,
    }


def _what(request: ExecutionRequest) -> dict[str, Any]:
    return {
        "kind": request.kind,
        "where": "sandbox" if request.sandboxed else "host",
        "code_sha256": _hash_of(request),
        "timeout_seconds": request.timeout_seconds or None,
    }


def _hash_of(request: ExecutionRequest) -> str | None:
    if request.script_content is not None:
        return hashlib.sha256(request.script_content.encode("utf-8", "surrogatepass")).hexdigest()
    if request.script_path is None:
        return None
    path = Path(request.directory or ".", request.script_path)
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(LARGEST_SOURCE)).hexdigest()
    except OSError:
        return None


def _seconds(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else round(max(0.0, end - begin), 3)
