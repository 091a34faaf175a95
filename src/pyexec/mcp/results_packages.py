"""The structured result of the tool that gives a session packages."""

from pyexec.mcp.results import Optional, Result


class PackagesInstalled(Result):
    """What a session was given: what was asked for, as far as it was not there, and what that needs."""

    session_id: str = ""
    installed: Optional[list[str]] = None
