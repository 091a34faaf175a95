"""Settling an execution whose keeper is gone without an outcome."""

import fcntl
import json
import os
import time
from pathlib import Path

from pyexec.processes.strays import Trace, end_strays
from pyexec.sandbox.claims import LOCK
from pyexec.sandbox.observations import Observation, Started, observe
from pyexec_guest import log

NEVER_STARTED = "It never started: the server or the keeper that held it was ended first."
KEEPER_ENDED = (
    "The keeper that guarded it was killed, so how it ended is not known; its output up to then is kept and its "
    "processes were ended."
)
SERVER_ENDED = "The server that did this work in its own process has ended, and the work with it."


def settle_loss(folder: Path, execution_id: str) -> Observation:
    """End what is left of a lost execution and write its outcome, once, whoever else tries at the same time."""
    try:
        fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return observe(folder)  # Its folder was removed meanwhile.
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if (folder / "outcome.json").exists():
            return observe(folder)
        started = observe(folder).started
        if started is None or not started.inside:  # The server's pid is not ours to kill.
            end_strays(execution_id, _trace(started) if started else None)
        _write_lost(folder, started)
    except BlockingIOError:
        pass  # Somebody else settles it, or it is guarded after all.
    finally:
        os.close(fd)
    return observe(folder)


def _trace(started: Started) -> Trace:
    return Trace(
        boot=started.boot,
        group=started.group,
        pid=started.pid,
        start_ticks=started.start_ticks,
        pipes=started.pipes,
    )


def _write_lost(folder: Path, started: Started | None) -> None:
    outcome = {
        "v": 1,
        "kind": "lost",
        "reason": NEVER_STARTED if started is None else SERVER_ENDED if started.inside else KEEPER_ENDED,
        "started_at": started.started_at if started else None,
        "ended_at": time.time(),
        **{f"{stream}_bytes": log.total(str(folder), stream) for stream in log.STREAMS},
    }
    part = folder / "outcome.json.part"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(json.dumps(outcome).encode())
        file.truncate()
    part.replace(folder / "outcome.json")
