"""Records and outcomes for tests that need one and do not care which."""

from dataclasses import replace
from typing import Any

from pyexec.domain.executions import Execution, Outcome

OWNER = "local|1000|"

_PLAIN = Execution(
    id="0" * 32,
    owner=OWNER,
    state="pending",
    kind="script",
    label=None,
    request_id=None,
    directory="/",
    source="inline",
    strategy="system-python",
    python="/usr/bin/python3",
    python_version=None,
    dependencies=None,
    timeout_seconds=0.0,
    stream=False,
    created_at=100.0,
)


def execution(number: int = 0, **values: Any) -> Execution:
    """Return a record with an id made of `number`."""
    return replace(_PLAIN, **{"id": f"{number:032x}", **values})


def exited(code: int = 0, ended_at: float = 200.0) -> Outcome:
    """Return the outcome of a program that ended by itself."""
    return Outcome(kind="exited", exit_code=code, started_at=ended_at - 1, ended_at=ended_at)
