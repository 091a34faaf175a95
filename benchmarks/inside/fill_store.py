"""Put so many ended executions into a state folder, through the store itself: `fill_store.py HOME COUNT`.

Runs on the interpreter of the environment that is measured.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from pyexec.app.principal import local_principal
from pyexec.domain.executions import Execution, Outcome
from pyexec.settings import load_settings
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.opening import database_of
from pyexec.storage.state_folder import StateFolder


def main(home: Path, count: int) -> None:
    folder = StateFolder(home)
    folder.create()
    database = database_of(folder, load_settings().database)
    store = ExecutionStore(database)
    owner = local_principal().key
    store.add_missing(_ended(owner, number) for number in range(count))
    database.close()


def _ended(owner: str, number: int) -> Execution:
    outcome = _outcome(number)
    return replace(_submitted(owner, number), state=outcome.state, outcome=outcome)


def _submitted(owner: str, number: int) -> Execution:
    return Execution(
        id=f"{number:032x}",
        owner=owner,
        state="pending",
        kind="script",
        label=f"job {number}" if number % 3 == 0 else None,
        request_id=None,
        directory="/home/somebody/project",
        source="inline" if number % 2 == 0 else "main.py",
        strategy="uv-run",
        python="/usr/bin/python3",
        python_version="3.13.1",
        dependencies=("numpy", "pandas>=2") if number % 4 == 0 else None,
        timeout_seconds=60.0,
        stream=False,
        created_at=time.time(),
    )


def _outcome(number: int) -> Outcome:
    now = time.time()
    return Outcome(
        kind="exited",
        exit_code=1 if number % 10 == 0 else 0,
        started_at=now - 1,
        ended_at=now,
        user_cpu_seconds=0.5,
        system_cpu_seconds=0.1,
        peak_rss_bytes=40_000_000,
        stdout_bytes=1000,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
