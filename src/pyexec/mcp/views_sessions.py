"""From sessions to structured results."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pyexec.mcp.results_sessions import SessionEntry, SessionInfo
from pyexec.mcp.views import iso_time

if TYPE_CHECKING:
    from pyexec.sessions.service import SessionStatus

MEGABYTE = 2**20
VARIABLES = 300
PACKAGES = 1000
BUSY = "Something runs in it; its variables can be told when that has ended."
SILENT = "Its interpreter does not answer: a thread in it may keep it busy."


def session_entry(status: "SessionStatus", now: float) -> SessionEntry:
    """Return a session as it is listed."""
    session, live = status.session, status.live
    state = ("busy" if live.get("busy") else "idle") if session.state == "live" else session.state
    return SessionEntry(
        session_id=session.id,
        state=state,
        reason=session.end.reason if session.end else None,
        created_at=iso_time(session.created_at),
        idle_seconds=round(max(0.0, now - session.used_at), 1) if state == "idle" else None,
        age_seconds=live.get("age_seconds"),
        memory_mb=_megabytes(live.get("memory")),
        memory_limit_mb=_megabytes(live.get("memory_limit")),
        processes=live.get("processes"),
        waiting=max(0, status.waiting - 1),
        environment=session.environment,
    )


def session_info(status: "SessionStatus", now: float) -> SessionInfo:
    """Return a session with what its interpreter says about itself."""
    entry = session_entry(status, now)
    guest = status.guest
    if guest is None:
        notes = {"busy": BUSY, "idle": SILENT}
        return SessionInfo(session=entry, note=notes.get(entry.state))
    return SessionInfo(
        session=entry,
        python=_text(guest.get("python")),
        cells=_whole(guest.get("turns")),
        variables=[cast("dict[str, Any]", one) for one in _list(guest.get("variables")) if isinstance(one, dict)][
            :VARIABLES
        ],
        packages=[one for one in _list(guest.get("packages")) if isinstance(one, str)][:PACKAGES],
    )


def variable_line(variable: Mapping[str, Any]) -> str:
    """Return a variable in a line."""
    measures = (
        f"{variable['length']} items" if isinstance(variable.get("length"), int) else "",
        " x ".join(map(str, _list(variable.get("shape")))),
        f"{variable['bytes']} bytes" if isinstance(variable.get("bytes"), int) else "",
    )
    told = ", ".join(filter(None, measures))
    return f"`{variable.get('name')}`: {variable.get('type')}" + (f" ({told})" if told else "")


def _megabytes(value: Any) -> float | None:
    return round(value / MEGABYTE, 1) if isinstance(value, int) else None


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value[:100] if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None
