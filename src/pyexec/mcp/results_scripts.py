"""The structured results of the script library's tools. Times are ISO 8601 in UTC."""

from typing import Any

from pydantic import BaseModel, Field

from pyexec.domain.executions import State
from pyexec.mcp.results import Optional, Result


class ScriptRow(BaseModel):
    """One script. `name` is what it is run, viewed and deleted by; `runs` is counted for autosaved ones only."""

    name: str
    path: str
    docstring: Optional[str] = None
    dependencies: Optional[list[str]] = None
    requires_python: Optional[str] = None
    last_job_id: Optional[str] = None
    last_status: Optional[State] = None
    last_run_at: Optional[str] = None
    runs: Optional[int] = None
    fault: Optional[str] = None


class Scripts(Result):
    """The saved scripts by name, and the autosaved ones, latest first."""

    scripts: list[ScriptRow] = Field(default_factory=list[ScriptRow])
    autosaved: Optional[list[ScriptRow]] = None


class ScriptSaved(Result):
    """A script as it was saved."""

    script: Optional[ScriptRow] = None


class ScriptSource(Result):
    """A script's source; of an autosaved one the sidecar too."""

    name: str = ""
    path: str = ""
    source: str = ""
    sidecar: Optional[dict[str, Any]] = None


class ScriptDeleted(Result):
    """What was deleted."""

    name: str = ""
    path: str = ""
