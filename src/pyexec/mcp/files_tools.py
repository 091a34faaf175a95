"""The tools and the resource for the files of sessions."""

from typing import TYPE_CHECKING, Annotated, Literal

from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError
from fastmcp.resources import ResourceContent, ResourceResult
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations
from pydantic import Field

from pyexec.domain.errors import PyexecError
from pyexec.mcp import arguments as arg
from pyexec.mcp import rendering_files as rendering
from pyexec.mcp import results_files as results
from pyexec.mcp import views_files as views
from pyexec.mcp.answers import answer
from pyexec.mcp.running import Desk

if TYPE_CHECKING:
    from pyexec.sessions.writing import Manner

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
LIST_FILES = "List files of a session, below path."
DOWNLOAD_FILE = "Read a file of a session: text, a picture, or a blob."
UPLOAD_FILE = "Write a file into a session's folder."
DELETE_FILE = "Delete a file or folder of a session."
WORKSPACE_FILE = "A file of a session."

READS = ToolAnnotations(read_only_hint=True)
CHANGES = ToolAnnotations(destructive_hint=True, idempotent_hint=True)

Path = Annotated[str, Field(description="In /workspace, or a workspace:// URI")]
Pattern = Annotated[str | None, Field(description="Such as *.csv or data/**/*.csv")]
Offset = Annotated[int, Field(description="First byte")]
Length = Annotated[int | None, Field(description="Most bytes")]
Encoding = Literal["text", "base64"]
Recursive = Annotated[bool, Field(description="A folder with all in it")]


def add_files_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tools for files of sessions to the server."""
    _add_upload_file(server, desk)
    _add_download_file(server, desk)
    _add_list_files(server, desk)
    _add_delete_file(server, desk)
    _add_resource(server, desk)


def _add_upload_file(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"files", "control"},
        output_schema=results.FileWritten.output_schema(),
        annotations=CHANGES,
        description=UPLOAD_FILE,
    )
    async def upload_file(
        *,
        session_id: str,
        path: Path,
        content: str,
        encoding: Encoding = "text",
        overwrite: bool = False,
        append: bool = False,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        async def work() -> results.FileWritten:
            services = await desk.services.get()
            files = services.files
            sessions = services.sessions
            made = session_id if sessions is None else await sessions.make(desk.principal(), session_id)
            manner: Manner = "append" if append else "replace" if overwrite else "create"
            file = await files.write(desk.principal(), made, path, content, encoding=encoding, manner=manner)
            return views.written(made, file)

        return await answer(work, rendering.render_written, results.FileWritten, markdown=markdown_output)


def _add_download_file(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"files", "introspection"},
        output_schema=results.FileContent.output_schema(),
        annotations=READS,
        description=DOWNLOAD_FILE,
    )
    async def download_file(
        *,
        session_id: str,
        path: Path,
        offset: Offset = 0,
        length: Length = None,
        encoding: Encoding | None = None,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        async def work() -> results.FileContent:
            files = (await desk.services.get()).files
            found = await files.read(
                desk.principal(), session_id, path, offset=offset, length=length, encoding=encoding
            )
            return views.content(session_id, found, asked=encoding)

        return await answer(
            work,
            rendering.render_content,
            results.FileContent,
            markdown=markdown_output,
            more=lambda result: result.blocks,
        )


def _add_list_files(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"files", "introspection"},
        output_schema=results.FileListing.output_schema(),
        annotations=READS,
        description=LIST_FILES,
    )
    async def list_files(
        *,
        session_id: str,
        path: str = "",
        pattern: Pattern = None,
        recursive: bool = True,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        async def work() -> results.FileListing:
            files = (await desk.services.get()).files
            found = await files.list(desk.principal(), session_id, path, pattern=pattern, recursive=recursive)
            return views.listing(session_id, found)

        return await answer(work, rendering.render_listing, results.FileListing, markdown=markdown_output)


def _add_delete_file(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"files", "control"},
        output_schema=results.FileDeleted.output_schema(),
        annotations=CHANGES,
        description=DELETE_FILE,
    )
    async def delete_file(
        *, session_id: str, path: str, recursive: Recursive = False, markdown_output: arg.MarkdownOutput = True
    ) -> ToolResult:
        async def work() -> results.FileDeleted:
            files = (await desk.services.get()).files
            return views.deleted(await files.delete(desk.principal(), session_id, path, recursive=recursive))

        return await answer(work, rendering.render_deleted, results.FileDeleted, markdown=markdown_output)


def _add_resource(server: FastMCP, desk: Desk) -> None:
    @server.resource("workspace://{session_id}/{path*}", description=WORKSPACE_FILE)
    async def workspace_file(session_id: str, path: str) -> ResourceResult:
        try:
            files = (await desk.services.get()).files
            found = await files.read_whole(desk.principal(), session_id, path)
        except PyexecError as error:
            raise ResourceError(f"{error.code}: {error.sentence()}") from error
        content = found.data if found.text is None else found.text
        return ResourceResult([ResourceContent(content, mime_type=found.media_type)])
