"""Ending all that somebody has here, when an operator says so."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
from anyio.to_thread import run_sync

from pyexec.domain.errors import NotFoundError, PyexecError, StateUnusableError
from pyexec.domain.executions import Execution
from pyexec.domain.principals import Principal
from pyexec.executions.service import ExecutionService
from pyexec.sessions.service import SessionService
from pyexec.storage.ended_users import LOOK_SECONDS, EndedUsers

REASON = "its user was ended by the operator"
AT_ONCE = 16
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedUser:
    """What was seen to end, and what was not.

    Attributes:
        ended_at: Since when it is noted that their tokens count no more, in seconds since the epoch (UTC).
        executions: The ids of executions that have ended.
        sessions: Sessions whose interpreters have ended; where files were to be removed, those that are gone.
        running: The ids of executions that run or wait yet.
        living: Sessions whose interpreters live yet, or whose files could not be removed.
        files_removed: Whether files were to be removed.
        unseen: Why it is not known what else they run, as a sentence; None where it is.
    """

    ended_at: float
    executions: frozenset[str]
    sessions: frozenset[str]
    running: frozenset[str]
    living: frozenset[str]
    files_removed: bool
    unseen: str | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left."""
        return not (self.running or self.living or self.unseen)


@dataclass(slots=True)
class _Account:
    """What has been seen so far."""

    executions: set[str] = field(default_factory=set[str])
    sessions: set[str] = field(default_factory=set[str])
    running: set[str] = field(default_factory=set[str])
    living: set[str] = field(default_factory=set[str])
    unseen: str | None = None

    @property
    def is_clear(self) -> bool:
        return not (self.running or self.living or self.unseen)


class UserService:
    """Ends users. Whoever calls it may do that to everybody."""

    def __init__(self, executions: ExecutionService, sessions: SessionService | None, ended: EndedUsers) -> None:
        self._executions = executions
        self._sessions = sessions
        self._ended = ended

    async def end(
        self, principal: Principal, *, remove_files: bool = False, patience: float = PATIENCE_SECONDS
    ) -> EndedUser:
        """End what somebody runs and has in line, and their sessions; tokens issued to them up to now count no more.

        With `remove_files` the workspaces go too; else they stay until they expire. Returns when all that has ended,
        which takes a little longer than servers take to notice it, so that nothing is begun behind its back; or when
        `patience` (seconds) is over, but for what is being asked then. May be repeated, to end what was left.

        Raises:
            StateUnusableError: It cannot be noted that they are ended, so nothing was.
        """
        try:
            ended_at = await run_sync(self._ended.end, principal)
        except OSError as error:
            raise StateUnusableError(
                f"That the user is ended cannot be noted in {self._ended.folder}: {error.strerror}. Nothing was ended.",
                hint="Servers would take their tokens. Make it writable, and run this again.",
            ) from error
        noticed = time.monotonic() + 2 * LOOK_SECONDS
        until = time.monotonic() + patience
        account = _Account()
        while True:
            last = time.monotonic() >= noticed
            with anyio.move_on_after(until - time.monotonic()):
                await self._end_once(principal, account, remove_files=remove_files)
            if (last and account.is_clear) or time.monotonic() >= until:
                break
            await anyio.sleep(max(PAUSE_SECONDS, noticed - time.monotonic() if account.is_clear else 0.0))
        return EndedUser(
            ended_at=ended_at,
            executions=frozenset(account.executions),
            sessions=frozenset(account.sessions),
            running=frozenset(account.running),
            living=frozenset(account.living),
            files_removed=remove_files,
            unseen=account.unseen,
        )

    async def _end_once(self, principal: Principal, account: _Account, *, remove_files: bool) -> None:
        active: list[Execution] = []
        account.unseen = None
        try:
            active = await self._executions.active(principal)
        except PyexecError as error:  # Sessions can be ended all the same.
            account.unseen = error.sentence()
        else:
            # What was seen before, and is not among them, has ended meanwhile.
            account.executions |= account.running
            account.running = {one.id for one in active}
            account.executions -= account.running
        # The last in line first, so that none begins meanwhile; and sessions before what runs in them, for its reason.
        await self._stop(principal, [one for one in reversed(active) if one.started_at is None], account)
        if self._sessions is not None:
            with anyio.CancelScope(shield=True):  # It waits for no longer than keepers may take to answer.
                told = await self._sessions.end_all(principal, REASON, remove=remove_files)
                account.sessions = (account.sessions | told.ended) - told.left
                account.living = set(told.left)
        await self._stop(principal, [one for one in active if one.id in account.running], account)

    async def _stop(self, principal: Principal, those: Sequence[Execution], account: _Account) -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def stop(execution_id: str) -> None:
            async with limiter:
                if await self._is_stopped(principal, execution_id):
                    account.running.discard(execution_id)
                    account.executions.add(execution_id)

        async with anyio.create_task_group() as tasks:
            for execution in those:
                tasks.start_soon(stop, execution.id)

    async def _is_stopped(self, principal: Principal, execution_id: str) -> bool:
        try:
            found = await self._executions.stop(principal, execution_id, "kill", f"It was ended: {REASON}.")
        except NotFoundError:  # Its record has been removed meanwhile, which happens to those that have ended.
            return True
        except (PyexecError, OSError):
            return False
        return found.ended
