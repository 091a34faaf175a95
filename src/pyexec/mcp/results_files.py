"""The structured results of the tools for files of sessions."""

from typing import Literal

from mcp_types import ContentBlock
from pydantic import BaseModel, Field, PrivateAttr

from pyexec.mcp.results import Optional, Result


class FileRow(BaseModel):
    """Something in a workspace; only a file can be read, by its URI."""

    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    modified: Optional[str] = None
    uri: Optional[str] = None


class FileListing(Result):
    """What lies in a folder, by path."""

    files: list[FileRow] = Field(default_factory=list[FileRow])
    total: int = 0
    complete: bool = True


class FileContent(Result):
    """A part of a file: as text, as base64 where that was asked for, else beside it."""

    path: str = ""
    uri: str = ""
    media_type: str = ""
    size: int = 0
    offset: int = 0
    encoding: Literal["text", "base64"] = "text"
    content: Optional[str] = None
    next_offset: Optional[int] = None
    _blocks: list[ContentBlock] = PrivateAttr(default_factory=list[ContentBlock])

    @property
    def blocks(self) -> list[ContentBlock]:
        """What the answer carries besides its text: a picture, or a blob."""
        return self._blocks


class FileWritten(Result):
    """A file as it was written."""

    path: str = ""
    uri: str = ""
    size: int = 0
    created: bool = False


class FileDeleted(Result):
    """What was deleted."""

    path: str = ""
    count: int = 0


class ChangedFile(BaseModel):
    """A file that an execution has created, changed or deleted in its session's folder."""

    path: str
    size: int
    change: Literal["created", "changed", "deleted"]
    uri: Optional[str] = None
