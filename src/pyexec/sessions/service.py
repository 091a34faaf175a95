"""What can be done with a session besides running something in it."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.to_thread import run_sync

from pyexec.domain.principals import Principal
from pyexec.domain.sessions import Session
from pyexec.sandbox.ports import SessionKeeper
from pyexec.sandbox.turns import tidy
from pyexec.sessions.directory import Found, SessionDirectory, waiting_in

_log = logging.getLogger(__name__)

SWEEP_SECONDS = 3600.0
ENDED_AT_ONCE = 16
RESTARTED = "it was restarted on request"
CLOSED = "it was closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """A session, and what its keeper says about it, if it lives.

    Attributes:
        session: The session.
        waiting: How many executions run in it or wait for their turn.
        live: `busy`, `idle_seconds`, `age_seconds`, `memory`, `peak_memory`, `memory_limit` (bytes), `cpu_seconds`,
            `processes`; empty where it does not live.
        guest: What its interpreter says about itself, tidied up, and as far as that is to be believed: `variables`,
            `packages`, `python`, `turns`; None where it was not asked, or is busy.
    """

    session: Session
    waiting: int
    live: Mapping[str, Any]
    guest: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSessions:
    """The ids of sessions that have ended (or are gone, where they were to be removed), and of those that have not.

    What is left of one whose removal did not come to its end is called by the name of its folder.
    """

    ended: frozenset[str]
    left: frozenset[str]


class SessionService:
    """Looks after the sessions of each principal, who sees no others."""

    def __init__(self, directory: SessionDirectory, keeper: SessionKeeper) -> None:
        self._directory = directory
        self._keeper = keeper

    async def all_of(self, principal: Principal) -> list[SessionStatus]:
        """Return a principal's sessions, the latest used first."""
        return await run_sync(self._all_of, principal.key)

    async def info(self, principal: Principal, session_id: str) -> SessionStatus:
        """Return a session with what its interpreter says about itself.

        Raises:
            NotFoundError: This principal has no such session.
        """
        return await run_sync(self._info, principal.key, session_id)

    async def make(self, principal: Principal, session_id: str) -> str:
        """Make a session, unless there is one; return its id, which is made up for `new`. Its interpreter starts later.

        Raises:
            InvalidArgumentError: It can be no id.
        """
        return await run_sync(self._directory.make, principal.key, session_id)

    async def restart(self, principal: Principal, session_id: str) -> Session:
        """End the interpreter of a session, and have the next execution start another one; the files stay.

        Raises:
            NotFoundError: This principal has no such session.
        """
        return await run_sync(self._restart, principal.key, session_id)

    async def close(self, principal: Principal, session_id: str) -> Session:
        """End a session and remove its files.

        Raises:
            NotFoundError: This principal has no such session.
        """
        return await run_sync(self._close, principal.key, session_id)

    async def end_all(self, principal: Principal, reason: str, *, remove: bool) -> EndedSessions:
        """End the interpreters of all sessions of a principal; their files stay, unless they are to be removed too.

        One that is just being started is not seen; who wants to be sure asks again.
        """
        there = await run_sync(self._directory.all_of, principal.key)
        if not remove:
            there = [one for one in there if one.session.state == "live"]
        limiter = anyio.CapacityLimiter(ENDED_AT_ONCE)
        gone: set[str] = set()

        async def end(one: Found) -> None:
            # Each for itself: one whose keeper hangs is waited for as long as that may take to answer.
            if await run_sync(partial(self._is_ended, one, reason, remove=remove), limiter=limiter):
                gone.add(one.session.id)

        async with anyio.create_task_group() as tasks:
            for one in there:
                tasks.start_soon(end, one)
        rest = await run_sync(self._directory.remove_rest, principal.key) if remove else []
        left = {one.session.id for one in there} - gone
        return EndedSessions(ended=frozenset(gone), left=frozenset(left.union(rest)))

    async def running_in(self, principal: Principal, session_id: str) -> str | None:
        """Return the id of the execution that runs in a session, or is the next to; None where there is none.

        Raises:
            NotFoundError: This principal has no such session.
        """
        return await run_sync(self._running_in, principal.key, session_id)

    async def sweep_forever(self) -> None:
        """Remove sessions that nobody has come back to for long, again and again; whoever starts this owns the task."""
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            try:
                await run_sync(self._directory.remove_expired, time.time())
            except OSError as error:  # The folder was removed, or the disk is full: no reason to end the server.
                _log.warning("sessions could not be swept: %s", error)

    def _all_of(self, owner: str) -> list[SessionStatus]:
        found = self._directory.all_of(owner)
        live: dict[str, Any] = {}
        for keeper, one in {f.session.keeper: f for f in found if f.session.keeper is not None}.items():
            told = self._keeper.ask({"op": "look", "folder": str(one.folder.path.parent)}, Path(keeper or ""))
            live |= told.get("live") or {}
        return [_status(one, live.get(one.folder.path.name) or {}) for one in found]

    def _info(self, owner: str, session_id: str) -> SessionStatus:
        found = self._directory.find(owner, session_id)
        info: dict[str, Any] = self._ask(found, "info").get("info") or {}
        guest = tidy(info.pop("guest", None))
        return _status(found, info, cast("dict[str, Any]", guest) if isinstance(guest, dict) else None)

    def _restart(self, owner: str, session_id: str) -> Session:
        found = self._directory.find(owner, session_id)
        self._ask(found, "end", reason=RESTARTED, renew="yes")
        found.folder.renew()
        return found.session

    def _close(self, owner: str, session_id: str) -> Session:
        found = self._directory.find(owner, session_id)
        self._ask(found, "end", reason=CLOSED)
        found.folder.remove()
        return found.session

    def _is_ended(self, found: Found, reason: str, *, remove: bool) -> bool:
        """End one; tell by its folder, which is the truth, whether it has."""
        self._ask(found, "end", reason=reason)
        if found.folder.is_live():
            return False
        if remove:
            try:
                found.folder.remove()
            except OSError as error:
                _log.warning("session %s could not be removed: %s", found.session.id, error)
                return False
        return True

    def _running_in(self, owner: str, session_id: str) -> str | None:
        found = self._directory.find(owner, session_id)
        waiting = waiting_in(found.folder)
        return waiting[0].partition("-")[2] if waiting else None

    def _ask(self, found: Found, op: str, **more: str) -> dict[str, Any]:
        keeper = found.session.keeper
        if keeper is None:
            return {}
        return dict(self._keeper.ask({"op": op, "folder": str(found.folder.path), **more}, Path(keeper)))


def _status(found: Found, live: Mapping[str, Any], guest: Mapping[str, Any] | None = None) -> SessionStatus:
    return SessionStatus(session=found.session, waiting=len(waiting_in(found.folder)), live=live, guest=guest)
