"""All sessions of one keeper: made, entered for a turn, left, ended."""

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyexec.domain.errors import (
    NotFoundError,
    PyexecError,
    SessionBusyError,
    SessionsFullError,
)
from pyexec.domain.limits import MEGABYTE
from pyexec.domain.sessions import SessionLimits, ended_error, span
from pyexec.sandbox.guarding import GuestConnection, signal_name
from pyexec.storage.sessions import SessionFolder
from pyexec.walls.bubblewrap.boxes import Box, Cause
from pyexec.walls.bubblewrap.folders import Folder
from pyexec.walls.bubblewrap.sessions.asking import ask
from pyexec.walls.bubblewrap.sessions.homes import Homes
from pyexec.walls.bubblewrap.sessions.live import LiveSession
from pyexec.walls.bubblewrap.sessions.shares import Share, Shares
from pyexec.walls.bubblewrap.sessions.sitter import Sitter
from pyexec.walls.bubblewrap.turnstile import Ticket, Turnstile
from pyexec.walls.bubblewrap.workspaces import HandedOut

ENDED_SECONDS = 2.0
ENTER_SECONDS = 30.0
IDLE_ENOUGH_SECONDS = 60.0
"""A session that was used more recently does not make room for one of somebody else."""

SHARE_SECONDS = 1.0
"""For so long an owner is taken to be within their share of files, where no turn has changed how much they have."""


class Sessions:
    """Holds the sandboxes that stay. May be used from several threads.

    Args:
        keeper: The folder of the keeper, by which servers find it.
        limits: Of sessions.
        homes: Makes their sandboxes and workspaces.
        turnstile: Who gets a sandbox next.
    """

    def __init__(self, keeper: Path, limits: SessionLimits, homes: Homes, turnstile: Turnstile) -> None:
        self._keeper = keeper
        self._limits = limits
        self._homes = homes
        self._turnstile = turnstile
        self._shares = Shares(limits.workspaces)
        self._lock = threading.Condition()
        self._live: dict[Path, LiveSession] = {}
        # Those that wait for a sandbox, or whose sandbox is being made.
        self._coming: set[Path] = set()
        self._sitter: Sitter | None = None
        self._within: dict[Path, float] = {}  # Until when an owner is known to have room.

    def enter(self, ticket: Ticket, folder: SessionFolder, prefix: Path, shared: Sequence[Folder] = ()) -> LiveSession:
        """Return a session that nobody else speaks with until it is left; start its interpreter where it is new.

        One that is new has these folders besides its own.

        Blocks until it is free, and until there is a sandbox.

        Raises:
            NotFoundError: There is no such session any more.
            SessionEndedError: It has ended.
            SessionBusyError: Somebody speaks with it for too long.
            SessionsFullError: Its owner has too many, and all are at work.
            WorkspacesFullError: The files of its owner's sessions come to more than they may.
            PyexecError: There is no sandbox for it; see `Families.sandbox`.
        """
        self._shares.require(folder.path.parent, self._sizes(folder.path.parent))
        live = self._free(folder.path)
        if live is not None:
            if self._is_taken_up(live):
                return live
            self.dismiss(live, how_it_ended(live.box))
        session = folder.read()
        if session is None:
            raise NotFoundError(f"The session in {folder.path.name} has been closed.")
        if session.end is not None:
            raise ended_error(session)
        try:
            return self._begin(ticket, folder, prefix, shared)
        except (OSError, PyexecError) as error:
            if folder.read() is not None:
                raise
            raise NotFoundError("The session was closed while it waited for room.") from error

    def enter_at_once(self, folder: SessionFolder, prefix: Path) -> LiveSession | None:
        """Return a session like `enter`, if it lives, there, and nobody speaks with it; never blocks."""
        if not self._has_room(folder.path.parent):
            return None  # Whoever waits is told.
        with self._lock:
            live = self._live.get(folder.path)
            if live is None or live.busy or live.ended is not None or live.prefix != prefix:
                return None
            live.busy = True
        if self._is_taken_up(live):
            return live
        # Which takes a moment, and whoever called this may hold up others.
        threading.Thread(target=lambda: self.dismiss(live, how_it_ended(live.box)), name="dismissed").start()
        return None

    def leave(self, live: LiveSession) -> None:
        """Let others have it; it lives on."""
        live.used = time.monotonic()
        self._note_size(live)
        sitter = self._watching()
        with self._lock:
            if live.ended is None:
                sitter.sit(live)
                live.busy = False
                self._lock.notify_all()
                return
        self._put_away(live)  # Somebody has ended it just now.

    def end(self, live: LiveSession, reason: str, *, only_idle: bool = False) -> None:
        """End one, whoever speaks with it; blocks until nothing of it is left. The first reason counts."""
        with self._lock:
            if live.ended is not None or (only_idle and live.busy):
                return
            live.ended = reason
            busy, live.busy = live.busy, True
        if busy:
            live.box.kill()  # Whoever has it notices, and puts it away.
            self._await_gone(live)
        else:
            self._watching().rise(live)
            self._put_away(live)

    def dismiss(self, live: LiveSession, reason: str) -> None:
        """End one that the caller has entered; blocks until nothing of it is left."""
        with self._lock:
            live.ended = live.ended or reason
        self._put_away(live)

    def end_in(self, folder: Path, reason: str, *, renew: bool) -> bool:
        """End the session of a folder; tell whether it lived. With `renew` the next turn in it starts another one."""
        with self._lock:
            live = self._live.get(folder)
        if live is None:
            return False
        live.renewed = renew
        self.end(live, reason)
        return True

    def look(self, owner: Path) -> dict[str, dict[str, Any]]:
        """Return what is known of the live sessions of one owner, by the names of their folders."""
        with self._lock:
            found = [live for live in self._live.values() if live.owner == owner]
        return {live.folder.path.name: self._describe(live) for live in found}

    def info(self, folder: Path) -> dict[str, Any]:
        """Return what the guest of a session says about itself, which is not to be believed; {} where it is busy."""
        with self._lock:
            live = self._live.get(folder)
            if live is None or live.busy:
                return {} if live is None else self._describe(live)
            live.busy = True
        self._watching().rise(live)
        told = ask(live) if live.connection.is_open else None
        if live.ended is None and live.connection.is_open:
            self.leave(live)
        else:
            self.dismiss(live, how_it_ended(live.box))
            return {}
        return {**self._describe(live), "guest": told}

    @contextmanager
    def workspace(self, folder: SessionFolder) -> Generator[HandedOut]:
        """Yield the workspace of a session, which may be in use, or have been left by an interpreter that is gone.

        Raises:
            PyexecError: It cannot be had; see `Workspaces.open`.
        """
        with self._lock:
            live = self._live.get(folder.path)
            # As long as we hold the lock it is not put away, and nobody else gets anything.
            found = HandedOut.of(live.home.workspace) if live is not None and live.ended is None else None
        if found is not None:
            with found:
                yield found
            return
        if live is not None:
            self._await_gone(live)
        workspace = self._homes.workspace(folder)
        try:
            self._shares.forget(folder)  # Whoever has it may write; it is measured again by who wants to know.
            with HandedOut.of(workspace) as found:
                yield found
        finally:
            workspace.close()

    def give_way(self) -> bool:
        """End the one that was not used for the longest time, if that is long enough; tell whether there was one."""
        with self._lock:
            idle = self._least_used(list(self._live.values()), IDLE_ENOUGH_SECONDS)
        if idle is None:
            return False
        self.end(idle, f"its memory was needed, idle for {span(_idle(idle))}", only_idle=True)
        return True

    def share(self, owner: Path) -> Share:
        """Return how much the files of all sessions of one owner come to, and may."""
        return self._shares.of(owner, self._sizes(owner))

    def count(self) -> int:
        """Return how many live."""
        with self._lock:
            return len(self._live)

    def close(self, reason: str) -> None:
        """End all."""
        with self._lock:
            found = list(self._live.values())
        for live in found:
            self.end(live, reason)
        if self._sitter is not None:
            self._sitter.close()

    # -- beginning -------------------------------------------------------------------------------------------------

    def _has_room(self, owner: Path) -> bool:
        """Tell whether an owner's files are within their share, as it was a moment ago and nobody has written since."""
        now = time.monotonic()
        if now < self._within.get(owner, 0.0):
            return True
        share = self.share(owner)
        if share.used > share.allowed:
            return False
        self._within[owner] = now + SHARE_SECONDS
        return True

    def _note_size(self, live: LiveSession) -> None:
        """Have the share of its owner be looked at again where its files have another size than before."""
        try:
            size = live.home.workspace.last_used()
        except OSError:
            size = -1
        if size != live.size:
            live.size = size
            self._within.pop(live.owner, None)

    def _is_taken_up(self, live: LiveSession) -> bool:
        """Stop watching a session that is ours now; tell whether it can be spoken with."""
        self._watching().rise(live)
        return live.connection.is_open and live.ended is None

    def _free(self, folder: Path) -> LiveSession | None:
        """Return the live session of a folder once nobody speaks with it, as taken."""
        with self._lock:
            freed = self._lock.wait_for(lambda: self._is_free(folder), ENTER_SECONDS)
            live = self._live.get(folder)
            if not freed:
                raise SessionBusyError("Somebody else works in this session for too long.", hint="Try again.")
            if live is not None:
                live.busy = True
            return live

    def _is_free(self, folder: Path) -> bool:
        live = self._live.get(folder)
        return folder not in self._coming and (live is None or not live.busy)

    def _await_gone(self, live: LiveSession) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._live.get(live.folder.path) is not live, ENTER_SECONDS)

    def _begin(self, ticket: Ticket, folder: SessionFolder, prefix: Path, shared: Sequence[Folder]) -> LiveSession:
        self._make_room(folder.path)
        try:
            live = self._made(ticket, folder, prefix, shared)
            with self._lock:
                self._live[folder.path] = live
            return live
        finally:
            with self._lock:
                self._coming.discard(folder.path)
                self._lock.notify_all()

    def _made(self, ticket: Ticket, folder: SessionFolder, prefix: Path, shared: Sequence[Folder]) -> LiveSession:
        home = self._turnstile.admit(ticket, lambda room: self._homes.make(folder, prefix, shared, room))
        try:
            lock = folder.begin(self._keeper, prefix)
        except BlockingIOError as error:
            home.close()
            raise SessionBusyError("The session is just being started.", hint="Try again.") from error
        except BaseException:
            home.close()
            raise
        return LiveSession(
            folder=folder,
            home=home,
            connection=GuestConnection(home.box.sandbox.socket),
            lock=lock,
            prefix=prefix,
        )

    def _make_room(self, folder: Path) -> None:
        """See that there may be one more of its owner, which is expected from then on.

        The one that was not used for the longest time makes room.
        """
        owner = folder.parent
        while True:
            with self._lock:
                if folder in self._coming:
                    raise SessionBusyError("The session is just being started.", hint="Try again.")
                theirs = [live for live in self._live.values() if live.owner == owner and live.ended is None]
                there = len(theirs) + sum(coming.parent == owner for coming in self._coming)
                if there < self._limits.live:
                    self._coming.add(folder)
                    return
                idle = self._least_used(theirs, 0.0)
            if idle is None:
                raise SessionsFullError(
                    f"{there} sessions are at work; at most {self._limits.live} may live.",
                    hint="Wait, or close one.",
                )
            self.end(idle, f"it made room for another one, idle for {span(_idle(idle))}", only_idle=True)

    def _least_used(self, among: list[LiveSession], seconds: float) -> LiveSession | None:
        idle = [live for live in among if not live.busy and live.ended is None and _idle(live) >= seconds]
        return min(idle, key=lambda live: live.used, default=None)

    # -- ending ----------------------------------------------------------------------------------------------------

    def _sizes(self, owner: Path) -> dict[str, int]:
        with self._lock:  # As long as we hold it none is put away.
            theirs = [live for live in self._live.values() if live.owner == owner and live.ended is None]
            return {live.folder.path.name: live.home.workspace.last_used() for live in theirs}

    def _put_away(self, live: LiveSession) -> None:
        live.connection.hang_up()
        with suppress(OSError):
            live.folder.note_size(live.home.workspace.used())
        live.home.close()
        with self._lock:
            if self._live.get(live.folder.path) is live:
                del self._live[live.folder.path]
            live.folder.end(live.lock, None if live.renewed else live.ended)
            self._lock.notify_all()

    def _on_end(self, live: LiveSession, why: str | None) -> None:
        """Note that one has ended while nobody spoke with it; on the sitter's thread, which has let go of it."""
        with self._lock:
            if live.ended is not None or live.busy:
                return  # Whoever has it finds out.
            live.busy = True
            live.ended = f"its interpreter said what none of ours says: {why}" if why else ""
        if not live.ended:
            live.ended = how_it_ended(live.box)
        self._put_away(live)

    def _on_look(self) -> None:
        """End those whose time is over; on the sitter's thread."""
        now = time.monotonic()
        with self._lock:
            over: list[tuple[LiveSession, str]] = []
            for live in self._live.values():
                if live.busy or live.ended is not None:
                    continue
                if now - live.used > self._limits.idle:
                    over.append((live, f"idle for {span(self._limits.idle)}"))
                elif now - live.started > self._limits.lifetime:
                    over.append((live, f"lived for {span(self._limits.lifetime)}"))
        for live, reason in over:
            self.end(live, reason, only_idle=True)

    def _watching(self) -> Sitter:
        with self._lock:
            if self._sitter is None:
                self._sitter = Sitter(self._on_end, self._on_look)
            return self._sitter

    def _describe(self, live: LiveSession) -> dict[str, Any]:
        usage = live.box.usage()
        now = time.monotonic()
        return {
            "busy": live.busy,
            "idle_seconds": 0.0 if live.busy else round(now - live.used, 3),
            "age_seconds": round(now - live.started, 3),
            "memory": usage.memory if usage is not None else None,
            "peak_memory": usage.peak_memory if usage is not None else None,
            "memory_limit": live.box.limits.memory,
            "cpu_seconds": round(usage.cpu_seconds, 3) if usage is not None else None,
            "processes": usage.processes if usage is not None else None,
        }


def how_it_ended(box: Box) -> str:
    """Tell in some words how a sandbox has ended by itself."""
    how = box.wait_ended(ENDED_SECONDS)
    if how is None or how.cause is Cause.KILLED:
        return box.reason or "its sandbox was ended from outside"
    if how.cause is Cause.OUT_OF_MEMORY:
        return f"out of memory: more than its limit of {how.memory_limit // MEGABYTE} MB"
    if how.cause is Cause.EXIT:
        return f"exited with code {how.value}"
    return f"crashed: {signal_name(how.value)}"


def _idle(live: LiveSession) -> float:
    return time.monotonic() - live.used
