"""The structured result of `execute_python`."""

from typing import Any

from pydantic import BaseModel, PrivateAttr

from pyexec.mcp.results import Optional, RunResult


class PythonException(BaseModel):
    """The exception that ended the code; `line` is that of the code it points to."""

    type: str
    message: str
    traceback: str
    line: Optional[int] = None


class Shown(BaseModel):
    """Something that was shown: a picture, a table, markup, a spec. What is long is told by its URI."""

    kind: str
    media_type: Optional[str] = None
    text: Optional[str] = None
    uri: Optional[str] = None
    width: Optional[int] = None
    height: Optional[int] = None
    chart: Optional[dict[str, Any]] = None
    table: Optional[dict[str, Any]] = None
    stdout_at: int = 0


class PythonFile(BaseModel):
    """A file that belongs to the job, or that the code has made or changed in its directory."""

    name: str
    size: int
    media_type: str
    uri: str


class PythonResult(RunResult):
    """What came of the code, or the handle to a run that goes on."""

    success: bool = False
    session_id: Optional[str] = None
    result: Optional[str] = None
    exception: Optional[PythonException] = None
    displays: Optional[list[Shown]] = None
    files: Optional[list[PythonFile]] = None
    peak_memory_mb: Optional[float] = None
    _pictures: list[tuple[str, bytes]] = PrivateAttr(default_factory=list[tuple[str, bytes]])

    @property
    def pictures(self) -> list[tuple[str, bytes]]:
        """The pictures that the answer carries, in order: media type and bytes."""
        return self._pictures
