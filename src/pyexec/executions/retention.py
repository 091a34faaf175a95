"""Removing what has ended and is no longer wanted; what waits or runs is never touched."""

import fcntl
import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from pyexec.domain.errors import InvalidArgumentError, PyexecError
from pyexec.domain.executions import Execution
from pyexec.domain.limits import ExecutionLimits
from pyexec.domain.principals import Principal
from pyexec.executions.recovery import Recovery, changed_at
from pyexec.executions.settling import Settler
from pyexec.sandbox.claims import is_held
from pyexec.scripts.autosaved import AutosavedScripts
from pyexec.storage import packed
from pyexec.storage.descriptors import read_descriptor
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.output import log_bytes
from pyexec.storage.state_folder import StateFolder

_log = logging.getLogger(__name__)

HOUR_SECONDS = 3600.0
FIRST_SWEEP_SECONDS = 30.0
ORPHAN_SECONDS = 3600.0
SETTLED_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneResult:
    """How many executions were removed, and how many are left, running ones included."""

    removed: int
    remaining: int


class Retention:
    """Prunes on request and sweeps by age and size."""

    def __init__(
        self,
        folder: StateFolder,
        store: ExecutionStore,
        settler: Settler,
        recovery: Recovery,
        autosaved: AutosavedScripts,
        limits: ExecutionLimits,
    ) -> None:
        self._folder = folder
        self._store = store
        self._settler = settler
        self._recovery = recovery
        self._autosaved = autosaved
        self._limits = limits

    async def prune(
        self, principal: Principal, *, keep_completed: bool, keep_failed: bool, max_age_hours: float | None
    ) -> PruneResult:
        """Remove ended executions that are older than so many hours (None: of any age).

        `keep_completed` spares those that succeeded, `keep_failed` all others.
        """
        check_age(max_age_hours)
        before = time.time() - (max_age_hours or 0) * HOUR_SECONDS

        def wanted(execution: Execution) -> bool:
            keep = keep_completed if execution.state == "completed" else keep_failed
            return not keep and _ended_at(execution) <= before

        return await run_sync(self._prune, principal, wanted)

    async def discard(self, principal: Principal, execution_id: str) -> None:
        """Remove one that has ended, whose output nobody will ask for again."""
        await run_sync(self._discard, principal.key, execution_id)

    async def sweep_forever(self) -> None:
        """Sweep again and again; whoever starts this owns the task."""
        await anyio.sleep(FIRST_SWEEP_SECONDS)
        while True:
            try:
                await run_sync(self.sweep)
            except (OSError, PyexecError) as error:  # No reason to end the server.
                _log.warning("executions could not be swept: %s", error)
            await anyio.sleep(self._limits.sweep_interval)

    def sweep(self) -> int:
        """Remove what is too old or too much, and folders nobody knows; return how many. One server at a time does."""
        removed = 0
        with self._alone() as alone:
            if alone:
                self._recovery.recover(before=time.time() - SETTLED_SECONDS)
                for owner in self._store.owners():
                    removed += self._sweep_owner(owner)
                removed += self._sweep_orphans()
                self._autosaved.sweep(self._limits.retention_age)
        return removed

    def _prune(self, principal: Principal, wanted: Callable[[Execution], bool]) -> PruneResult:
        self._settler.settle_active(principal.key)  # Some may have ended since somebody last looked.
        ended = self._store.ended(principal.key)
        removed = self.remove(principal.key, filter(wanted, ended))
        return PruneResult(removed=removed, remaining=self._store.count(principal.key))

    def ended_before(self, owner: str, moment: float) -> list[Execution]:
        """Return what has ended before a moment, in seconds since the epoch; blocks."""
        self._settler.settle_active(owner)  # Some may have ended since somebody last looked.
        return [execution for execution in self._store.ended(owner) if _ended_at(execution) <= moment]

    def remove(self, owner: str, executions: Iterable[Execution]) -> int:
        """Remove records that have ended, and their folders; return how many there were. Blocks."""
        ids = [execution.id for execution in executions]
        # Folders that were there without a record would be found, and have one again.
        aside = [packed.set_aside(self._folder.execution(execution_id)) for execution_id in ids]
        try:
            removed = self._store.remove(owner, ids)
        except BaseException:
            for folder in aside:
                packed.put_back(folder)
            raise
        for folder in aside:
            packed.remove(folder)
        return removed

    def orphans(self, before: float, owner: str | None = None) -> Iterator[Path]:
        """Yield folders, unchanged since a moment, that no record knows and no keeper guards; blocks.

        With an owner, what lies in a folder must not say that it is somebody else's.
        """
        old = [folder for folder in packed.folders_in(self._folder.executions) if changed_at(folder) < before]
        known = self._store.known([folder.name for folder in old])
        for folder in old:
            if folder.name in known or is_held(folder):
                continue
            descriptor = read_descriptor(folder) if owner is not None else None
            if descriptor is None or descriptor.owner == owner:
                yield folder

    def _discard(self, owner: str, execution_id: str) -> None:
        self._settler.catch_up()  # It may have ended just now.
        if self._store.remove(owner, [execution_id]):
            packed.remove(self._folder.execution(execution_id))

    def _sweep_owner(self, owner: str) -> int:
        self._settler.settle_active(owner)
        oldest = time.time() - self._limits.retention_age
        kept: list[tuple[Execution, int]] = []
        doomed: list[Execution] = []
        for execution in self._store.ended(owner):
            if _ended_at(execution) < oldest:
                doomed.append(execution)
            else:
                kept.append((execution, log_bytes(self._folder.execution(execution.id))))
        excess = sum(size for _execution, size in kept) - self._limits.retention_size
        for execution, size in kept:
            if excess <= 0:
                break
            doomed.append(execution)
            excess -= size
        return self.remove(owner, doomed)

    def _sweep_orphans(self) -> int:
        """Remove folders that a server killed in the middle of something left behind."""
        orphans = list(self.orphans(time.time() - ORPHAN_SECONDS))
        for folder in orphans:
            packed.remove(folder)
        return len(orphans)

    @contextmanager
    def _alone(self) -> Generator[bool]:
        fd = os.open(self._folder.root / "sweep.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield _try_lock(fd)
        finally:
            os.close(fd)


def check_age(max_age_hours: float | None) -> None:
    """Refuse an age that makes no sense.

    Raises:
        InvalidArgumentError: It is not between 0 and a million hours.
    """
    if max_age_hours is not None and not 0 <= max_age_hours <= 10**6:
        raise InvalidArgumentError(f"max_age_hours is {max_age_hours:g}; it must be between 0 and 1000000.")


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _ended_at(execution: Execution) -> float:
    return execution.outcome.ended_at if execution.outcome else execution.created_at
