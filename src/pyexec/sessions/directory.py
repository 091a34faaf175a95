"""The sessions of each principal: found, made, refused."""

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError, NotFoundError, SessionBusyError
from pyexec.domain.sessions import NEW_ID, Session, SessionLimits, check_session_id, ended_error
from pyexec.storage import hostile_folders
from pyexec.storage.sessions import SessionFolder, SessionFolders

ID_BYTES = 16
REMEMBERED = 1000
REMOVING_SECONDS = 3600.0
"""A removal that began so long ago has been given up."""


@dataclass(frozen=True)
class Found:
    """A session and its folder."""

    session: Session
    folder: SessionFolder

    @cached_property
    def keeper(self) -> Path | None:
        """The folder of the keeper that has its sandbox, while it lives."""
        return None if self.session.keeper is None else Path(self.session.keeper)

    @cached_property
    def queue(self) -> Path:
        """The line in which its turns stand."""
        return self.folder.queue


class SessionDirectory:
    """Knows the sessions by their folders. Methods block on the disk, for less than a millisecond each."""

    def __init__(self, folders: SessionFolders, limits: SessionLimits) -> None:
        self._folders = folders
        self._limits = limits
        self._lived: dict[tuple[str, str], Found] = {}

    def remembered(self, owner: str, session_id: str, *, python: str | None, environment: str | None) -> Found | None:
        """Return a session as it was when it was last entered, if it lived then, and fits; does not block."""
        found = self._lived.get((owner, session_id))
        if found is None or not _fits(found.session, python, environment):
            return None
        return found

    def enter(self, owner: str, session_id: str, *, python: str | None, environment: str | None) -> Found:
        """Return a session that something is to be run in; make it if there is none.

        Raises:
            InvalidArgumentError: It can be no id, or the session has another interpreter than is asked for.
            SessionEndedError: It has ended.
            SessionBusyError: Too many wait for their turn in it.
        """
        session_id = _chosen(session_id)
        folder = self._folders.of(owner, session_id)
        session = folder.read()
        if session is None:
            folder.create(session_id, owner, python=python, environment=environment)
            session = folder.read()
        if session is not None and not session.chosen:  # It has files, and nothing has run in it.
            folder.choose(python=python, environment=environment)
            session = folder.read()
        if session is None:
            raise SessionBusyError(f"Session {session_id!r} is just being closed.", hint="Try again.")
        _see_that_it_fits(session, python, environment)
        found = Found(session, folder)
        self._remember(found)
        if session.end is not None:
            raise ended_error(session)
        self._see_that_there_is_room(session_id, folder)
        return found

    def is_chosen(self, owner: str, session_id: str) -> bool:
        """Tell whether an owner has a session of that id, of which it is decided what its interpreter is."""
        session = self._folders.of(owner, session_id).read()
        return session is not None and session.chosen

    def make(self, owner: str, session_id: str) -> str:
        """Make a session, unless there is one; return its id. Who first runs something in it chooses its interpreter.

        Raises:
            InvalidArgumentError: It can be no id.
        """
        session_id = _chosen(session_id)
        self._folders.of(owner, session_id).create(session_id, owner, chosen=False)
        return session_id

    def find(self, owner: str, session_id: str) -> Found:
        """Return a session.

        Raises:
            NotFoundError: This owner has none of that id.
        """
        folder = self._folders.of(owner, session_id)
        session = folder.read()
        if session is None:
            raise NotFoundError(
                f"There is no session {session_id[:64]!r}.", hint="list_sessions shows those there are."
            )
        return Found(session, folder)

    def all_of(self, owner: str) -> list[Found]:
        """Return an owner's sessions, the latest used first."""
        found = [Found(session, folder) for folder in self._folders.all_of(owner) if (session := folder.read())]
        return sorted(found, key=lambda one: -one.session.used_at)

    def remove_expired(self, now: float) -> int:
        """Remove the folders that nobody has come back to for so long; return how many there were."""
        removed = 0
        for folder in self._folders.all():
            session = folder.read()
            if session is None or session.state == "live":
                continue
            since = session.end.ended_at if session.end else session.used_at
            if now - since > self._limits.kept and not waiting_in(folder):
                folder.remove()
                removed += 1
        for path in self._folders.abandoned(now - REMOVING_SECONDS):
            hostile_folders.remove(path)
        return removed

    def _remember(self, found: Found) -> None:
        key = (found.session.owner, found.session.id)
        if found.session.state == "live":
            while len(self._lived) >= REMEMBERED:
                self._lived.pop(next(iter(self._lived)), None)
            self._lived[key] = found
        else:
            self._lived.pop(key, None)

    def remove_rest(self, owner: str) -> list[str]:
        """Remove what is left of an owner's sessions whose removal came to no end; return what is left even so."""
        rest = self._folders.half_removed(owner)
        for path in rest:
            with suppress(OSError):  # Somebody else may be at it.
                hostile_folders.remove(path)
        return [path.name for path in rest if path.exists()]

    def _see_that_there_is_room(self, session_id: str, folder: SessionFolder) -> None:
        waiting = len(waiting_in(folder))
        if waiting > self._limits.waiting:
            raise SessionBusyError(
                f"{waiting - 1} executions wait for their turn in session {session_id!r}; at most "
                f"{self._limits.waiting} may.",
                hint="Wait for some to end, cancel them, or use another session.",
            )


def _chosen(session_id: str) -> str:
    return f"s{secrets.token_hex(ID_BYTES)}" if session_id == NEW_ID else check_session_id(session_id)


def waiting_in(folder: SessionFolder) -> list[str]:
    """Return the entries of the line before a session, whoever runs in it the first."""
    with suppress(OSError):
        return sorted(name for name in os.listdir(folder.queue) if not name.startswith("."))
    return []


def _fits(session: Session, python: str | None, environment: str | None) -> bool:
    return python in (None, session.python) and environment in (None, session.environment)


def _see_that_it_fits(session: Session, python: str | None, environment: str | None) -> None:
    for name, asked, has in (
        ("python_version", python, session.python),
        ("environment", environment, session.environment),
    ):
        if asked is not None and asked != has:
            raise InvalidArgumentError(
                f"{name} is {asked!r}, and session {session.id!r} was made with "
                f"{repr(has) if has else 'the usual one'}.",
                hint="Leave it out, or use another session_id.",
            )
