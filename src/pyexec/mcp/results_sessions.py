"""The structured results of the session tools."""

from typing import Any

from pydantic import BaseModel

from pyexec.mcp.results import Optional, Result


class SessionEntry(BaseModel):
    """A session in a list."""

    session_id: str
    state: str
    reason: Optional[str] = None
    created_at: str
    idle_seconds: Optional[float] = None
    age_seconds: Optional[float] = None
    memory_mb: Optional[float] = None
    memory_limit_mb: Optional[float] = None
    processes: Optional[int] = None
    waiting: int = 0
    environment: Optional[str] = None


class SessionList(Result):
    """The sessions of who asks, the latest used first."""

    sessions: Optional[list[SessionEntry]] = None


class SessionInfo(Result):
    """One session, and what its interpreter says about itself."""

    session: Optional[SessionEntry] = None
    python: Optional[str] = None
    cells: Optional[int] = None
    variables: Optional[list[dict[str, Any]]] = None
    packages: Optional[list[str]] = None
    note: Optional[str] = None


class SessionChange(Result):
    """What was done with a session."""

    session_id: str = ""
    job_id: Optional[str] = None
    message: str = ""
