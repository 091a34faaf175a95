"""The structured result of `profile_script`."""

from pydantic import BaseModel

from pyexec.mcp.results import Optional, RunResult
from pyexec.profiles.modes import Mode, Unit


class ProfileRow(BaseModel):
    """A function, or for memory a line; amounts are in the unit of the profile."""

    function: str
    file: str
    line: int
    own: float
    total: float
    count: Optional[int] = None


class ProfileResult(RunResult):
    """A run and what was measured of it; nothing yet while it goes on."""

    mode: Optional[Mode] = None
    unit: Optional[Unit] = None
    total: Optional[float] = None
    rows: Optional[list[ProfileRow]] = None
    text: Optional[str] = None
    artifacts: Optional[list[str]] = None
    overhead: Optional[str] = None
