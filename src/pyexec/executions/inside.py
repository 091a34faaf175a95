"""Executions inside a server: work that its own process does, recorded like everything that runs."""

import secrets
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pyexec.domain.errors import PyexecError, StateUnusableError
from pyexec.domain.executions import Execution
from pyexec.domain.limits import ExecutionLimits
from pyexec.domain.principals import Principal
from pyexec.domain.progress import Progress
from pyexec.domain.text import legible
from pyexec.executions.recovery import ID_BYTES
from pyexec.executions.requests import check_text
from pyexec.executions.settling import Settler
from pyexec.sandbox.inside import InsideGuard, OnStop
from pyexec.storage.descriptors import write_descriptor
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.progress import write_progress
from pyexec.storage.returned import write_returned
from pyexec.storage.state_folder import StateFolder

KIND = "smart_async"

Ended = Literal["returned", "raised", "cancelled", "lost"]


class InsideExecution:
    """One of them. Its methods block on the disk and may be called from any thread."""

    def __init__(self, execution: Execution, folder: Path, guard: InsideGuard, settle: Callable[[], object]) -> None:
        self.id = execution.id
        self._folder = folder
        self._guard = guard
        self._settle = settle
        self._writing = threading.Lock()
        self._told: Progress | None = None

    def started(self) -> None:
        """Note that the work has begun."""
        with suppress(OSError):  # On a broken disk it is only not seen to run.
            self._guard.started()

    def tell(self, progress: Progress) -> None:
        """Note how far it is, unless that is noted already."""
        with self._writing, suppress(OSError):  # Its folder may be gone by now.
            if progress != self._told:
                write_progress(self._folder, progress)
                self._told = progress

    def keep(self, value: bytes) -> None:
        """Keep what it returned, as JSON.

        Raises:
            StateUnusableError: It cannot be written.
        """
        try:
            write_returned(self._folder, value)
        except OSError as error:
            raise StateUnusableError(f"The result could not be kept: {error.strerror}.") from error

    def end(self, how: Ended, reason: str | None = None, stderr: str = "") -> None:
        """Write how it ended, once; `stderr` is what a reader of its output is shown."""
        self._guard.end(how, reason, stderr)

    def close(self) -> None:
        """Let go of it, once it has ended and nobody is in `serve`; whoever waits for it goes on then."""
        self._guard.close()

    def index(self) -> None:
        """Bring the record up to date; whoever looks for it would do the same."""
        with suppress(PyexecError):
            self._settle()

    async def serve(self, on_stop: OnStop) -> None:
        """See `InsideGuard.serve`."""
        await self._guard.serve(on_stop)


class InsideExecutions:
    """Makes them."""

    def __init__(
        self, *, folder: StateFolder, store: ExecutionStore, settler: Settler, limits: ExecutionLimits, directory: Path
    ) -> None:
        self._folder = folder
        self._store = store
        self._settler = settler
        self._limits = limits
        self._directory = directory

    def begin(self, principal: Principal, *, source: str, label: str | None, started: bool) -> InsideExecution:
        """Record work that is about to begin, or has (`started`); it is this process that guards it.

        Raises:
            InvalidArgumentError: The label is not allowed.
            DiskFullError: The disk is nearly full.
            StateUnusableError: The state folder cannot be written.
        """
        check_text("job_label", label)
        self._folder.require_room(self._limits.free_disk)
        execution = self._new_record(principal, source, label)
        folder = self._folder.execution(execution.id)
        guard: InsideGuard | None = None
        try:
            folder.mkdir(mode=0o700)
            guard = InsideGuard(folder)
            write_descriptor(folder, execution)
            self._store.add(execution)
        except BaseException as error:
            if guard is not None:
                guard.close()
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise StateUnusableError(f"The state folder cannot be written: {error.strerror}.") from error
            raise
        record = InsideExecution(execution, folder, guard, lambda: self._settler.settle(execution))
        if started:
            record.started()
        return record

    def _new_record(self, principal: Principal, source: str, label: str | None) -> Execution:
        return Execution(
            id=secrets.token_hex(ID_BYTES),
            owner=principal.key,
            state="pending",
            kind=KIND,
            label=label,
            request_id=None,
            directory=legible(str(self._directory)),
            source=legible(source),
            strategy="system-python",
            python=legible(sys.executable),
            python_version=".".join(map(str, sys.version_info[:3])),
            dependencies=None,
            timeout_seconds=0.0,
            stream=False,
            created_at=time.time(),
        )
