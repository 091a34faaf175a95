"""A session: a live interpreter that keeps its variables, imports and files from one execution to the next."""

import re
from dataclasses import dataclass
from typing import Literal

from pyexec.domain.errors import InvalidArgumentError, SessionEndedError, WorkspacesFullError
from pyexec.domain.limits import DAY, MEGABYTE

SessionState = Literal["new", "live", "ended"]

NEW_ID = "new"
"""Who asks for a session of this name gets one with an id that nobody has had before."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Limits of sessions, with their defaults. Durations are seconds.

    Attributes:
        live: How many one owner may have alive.
        waiting: How many executions may wait for their turn in one.
        idle: How long one lives that nobody uses.
        lifetime: How long one lives at most.
        kept: How long the files of one that has ended are kept.
        workspaces: How many bytes the files of all sessions of one owner may come to, of those that have ended too.
    """

    live: int = 16
    waiting: int = 32
    idle: float = 1800.0
    lifetime: float = DAY
    kept: float = 7 * DAY
    workspaces: int = 4096 * MEGABYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """Why and when a session has ended, the reason without a full stop. Times are seconds since the epoch (UTC)."""

    reason: str
    ended_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What is known of a session. Times are seconds since the epoch (UTC).

    Attributes:
        id: As its owner knows it.
        state: `new`: its interpreter starts with the next execution; `live`; `ended`: it starts again when asked to.
        chosen: Whether it is decided what its interpreter is; else whoever first runs something in it decides.
        python: The Python that was asked for; None: the usual one.
        environment: The name of the environment that was asked for; None: the usual one.
        started_at: When its interpreter was started.
        used_at: When its last execution ended, or it was made.
        keeper: The folder of the keeper that has its sandbox, while it lives.
        prefix: The folder of the environment that it runs on, or did.
        end: Why it has ended.
    """

    id: str
    owner: str
    state: SessionState
    created_at: float
    chosen: bool = True
    python: str | None = None
    environment: str | None = None
    started_at: float | None = None
    used_at: float
    keeper: str | None = None
    prefix: str | None = None
    end: SessionEnd | None = None


def check_session_id(text: str) -> str:
    """Return the id of a session, if it can be one.

    Raises:
        InvalidArgumentError: It cannot.
    """
    if not _ID.fullmatch(text):
        raise InvalidArgumentError(
            f"session_id is {text[:100]!r}; it must have 1 to 64 letters, digits, '.', '_' or '-', the first of them a "
            "letter or a digit.",
            hint=f"With {NEW_ID!r} you get one that is made up.",
        )
    return text


def ended_error(session: Session) -> SessionEndedError:
    """Return what is said to who uses a session that has ended."""
    reason = session.end.reason if session.end else "its interpreter is gone"
    return SessionEndedError(
        f"Session {session.id!r} has ended: {reason}. Its variables are lost, its files are kept.",
        hint="restart_session starts it anew.",
        reason=reason,
    )


def workspaces_full(used: int, allowed: int) -> WorkspacesFullError:
    """Return what is said to who has more files than they may; bytes."""
    return WorkspacesFullError(
        f"The files of your sessions take {used / MEGABYTE:.0f} MB; {allowed // MEGABYTE} MB are allowed for all "
        "together, those of ended sessions included.",
        hint="Make room with delete_file, or close_session, which removes a session with its files; list_sessions "
        "shows those there are.",
    )


def span(seconds: float) -> str:
    """Return a duration in words, such as `30 min`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
