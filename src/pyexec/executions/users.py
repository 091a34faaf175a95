"""Ending all that somebody has here, when an operator says so."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
from anyio.to_thread import run_sync

from pyexec.domain.executions import Execution
from pyexec.domain.principals import Principal
from pyexec.executions.service import ExecutionService
from pyexec.sessions.service import SessionService
from pyexec.storage.ended_users import LOOK_SECONDS, EndedUsers

REASON = "its user was ended by the operator"
AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedUser:
    """What there was to end: how many executions and sessions, and whether the files went too."""

    executions: int
    sessions: int
    files_removed: bool


class UserService:
    """Ends users. Whoever calls it may do that to everybody."""

    def __init__(self, executions: ExecutionService, sessions: SessionService | None, ended: EndedUsers) -> None:
        self._executions = executions
        self._sessions = sessions
        self._ended = ended

    async def end(self, principal: Principal, *, remove_files: bool = False) -> EndedUser:
        """End what somebody runs and has in line, and their sessions; tokens issued to them up to now count no more.

        With `remove_files` the workspaces go too; else they stay until they expire. Takes a little longer than servers
        take to notice that, so that nothing is begun behind its back.
        """
        await run_sync(self._ended.end, principal)
        executions, sessions = await self._end_once(principal, remove_files=remove_files)
        await anyio.sleep(2 * LOOK_SECONDS)
        later = await self._end_once(principal, remove_files=remove_files)
        return EndedUser(executions=executions + later[0], sessions=max(sessions, later[1]), files_removed=remove_files)

    async def _end_once(self, principal: Principal, *, remove_files: bool) -> tuple[int, int]:
        active = await self._executions.active(principal)
        # The last in line first, so that none begins meanwhile; and sessions before what runs in them, for its reason.
        await self._stop(principal, [one for one in reversed(active) if one.started_at is None])
        sessions = 0 if self._sessions is None else await self._sessions.end_all(principal, REASON, remove=remove_files)
        await self._stop(principal, active)
        return len(active), sessions

    async def _stop(self, principal: Principal, those: Sequence[Execution]) -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def stop(execution_id: str) -> None:
            async with limiter:
                await self._executions.stop(principal, execution_id, "kill", f"It was ended: {REASON}.")

        async with anyio.create_task_group() as tasks:
            for execution in those:
                tasks.start_soon(stop, execution.id)
