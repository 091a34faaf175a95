"""A server whose sessions are folders on disk: their contents are made by processes that own them."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastmcp import Client, FastMCP
from mcp_types import ContentBlock, TextContent

from pyexec.domain.errors import NotFoundError
from pyexec.domain.limits import FileLimits
from pyexec.domain.principals import Principal
from pyexec.mcp.server import build_server
from pyexec.sessions.files import SessionFiles
from pyexec.sessions.workspaces import WorkspaceFolder

OWNER = 54321
"""Whom workspaces belong to where the server is root, as it is with sandboxes."""

ANN = Principal(issuer="local", subject="ann")
BEN = Principal(issuer="local", subject="ben")


@dataclass
class Folders:
    """Workspaces below a folder, one for each principal and session; `room` is what may be written into each."""

    root: Path
    room: int | None = None

    def open(self, principal: Principal, session_id: str) -> WorkspaceFolder:
        flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return WorkspaceFolder(fd=os.open(self.root / principal.subject / session_id, flags), room=self.room)
        except OSError:
            raise NotFoundError(f"There is no session {session_id!r}.") from None

    def make(self, principal: Principal, session_id: str) -> "Workspace":
        path = self.root / principal.subject / session_id
        path.mkdir(parents=True)
        if os.geteuid() == 0:
            os.chown(path, OWNER, OWNER)
        return Workspace(path)


@dataclass(frozen=True)
class Workspace:
    """A workspace as its own code sees it."""

    path: Path

    def run(self, source: str) -> str:
        """Run Python in it, as whom it belongs to; return what it printed."""
        ended = subprocess.run(self._command(source), cwd=self.path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def start(self, source: str) -> "subprocess.Popen[str]":
        """Start Python in it; its first line is read, so that it is at work."""
        process = subprocess.Popen(self._command(source), cwd=self.path, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def _command(self, source: str) -> list[str]:
        as_owner = "import os, socket, time\n"  # Which its owner may not be able to read.
        if os.geteuid() == 0:
            as_owner += f"os.setgid({OWNER}); os.setuid({OWNER})\n"
        return [os.path.realpath(sys.executable), "-I", "-S", "-c", as_owner + source]


@dataclass(frozen=True)
class Answer:
    """What a tool answered."""

    data: dict[str, Any]
    text: str
    more: list[ContentBlock]
    is_error: bool


@dataclass(frozen=True)
class FilesClient:
    """A client of the tools for files."""

    client: Client[Any]
    folders: Folders

    async def call(self, tool: str, /, session_id: str = "s", **arguments: Any) -> Answer:
        given = {"session_id": session_id, **arguments}
        result = await self.client.call_tool(tool, given, raise_on_error=False)
        text, *more = result.content
        assert isinstance(text, TextContent)
        assert result.structured_content is not None, text.text
        json.dumps(result.structured_content).encode("utf-8")
        return Answer(result.structured_content, text.text, more, result.is_error)

    async def get(self, tool: str, /, session_id: str = "s", **arguments: Any) -> dict[str, Any]:
        answer = await self.call(tool, session_id, **arguments)
        assert not answer.is_error, answer.text
        return answer.data

    async def refused(self, tool: str, /, session_id: str = "s", **arguments: Any) -> tuple[str, str]:
        """Return the code and the sentence of a refusal."""
        answer = await self.call(tool, session_id, **arguments)
        assert answer.is_error, answer.text
        return answer.data["error_code"], answer.data["error"]

    async def paths(self, **arguments: Any) -> list[str]:
        return [file["path"] for file in (await self.get("list_files", **arguments))["files"]]


@dataclass(frozen=True)
class OnlyFiles:
    """Services with nothing but files."""

    files: SessionFiles
    sessions: None = None

    async def get(self) -> Any:
        return self


def files_server(folders: Folders, principal: Principal, limits: FileLimits | None = None) -> FastMCP:
    """Build a server of the tools for files."""
    services = OnlyFiles(SessionFiles(folders, limits or FileLimits(), 60_000))
    return build_server(services, lambda: principal, 20, ("files",))


@asynccontextmanager
async def files_client(
    folders: Folders, principal: Principal = ANN, limits: FileLimits | None = None
) -> AsyncGenerator[FilesClient]:
    """Connect a client to such a server."""
    async with Client(files_server(folders, principal, limits)) as client:
        yield FilesClient(client, folders)
