"""The structured result of the tool that exports sessions."""

from pyexec.mcp.results import Optional, Result


class SessionExported(Result):
    """A file with what a session has run, or runs in; its content, where that is text of moderate length."""

    path: str = ""
    uri: str = ""
    size: int = 0
    cells: int = 0
    content: Optional[str] = None
