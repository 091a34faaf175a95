"""The tool that exports sessions."""

from typing import TYPE_CHECKING, Literal

from fastmcp import FastMCP
from fastmcp.tools import ToolResult
from mcp_types import ContentBlock, ResourceLink, ToolAnnotations

from pyexec.mcp import arguments as arg
from pyexec.mcp.answers import answer
from pyexec.mcp.rendering import fenced
from pyexec.mcp.results_export import SessionExported
from pyexec.mcp.running import Desk
from pyexec.sessions.paths import uri_of

if TYPE_CHECKING:
    from pyexec.sessions.export import Exported

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
EXPORT_SESSION = "Write a session's cells, or the lock of its packages, into its folder."

EXPORTS = ToolAnnotations(destructive_hint=False, idempotent_hint=True)
CHARACTERS = 20_000
_TYPES = {".ipynb": "application/x-ipynb+json", ".py": "text/x-python", ".txt": "text/plain"}


def add_export_tool(server: FastMCP, desk: Desk) -> None:
    """Add `export_session` to the server."""

    @server.tool(
        tags={"sessions", "control"},
        output_schema=SessionExported.output_schema(),
        annotations=EXPORTS,
        description=EXPORT_SESSION,
    )
    async def export_session(
        *,
        session_id: str,
        format: Literal["ipynb", "script", "lock"] = "ipynb",  # noqa: A002 - what callers call it
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        async def work() -> SessionExported:
            exports = (await desk.services.get()).exports
            return _result(session_id, await exports.export(desk.principal(), session_id, format))

        return await answer(work, _render, SessionExported, markdown=markdown_output, more=_link)


def _result(session_id: str, exported: "Exported") -> SessionExported:
    readable = not exported.path.endswith(".ipynb") and len(exported.text) <= CHARACTERS
    return SessionExported(
        path=exported.path,
        uri=uri_of(session_id, exported.path),
        size=exported.size,
        cells=exported.cells,
        content=exported.text if readable else None,
    )


def _render(result: SessionExported) -> str:
    what = f"{result.cells} cells" if result.cells else "It"
    head = f"{what} went into `{result.path}` ({result.size} bytes): `{result.uri}`."
    return head if result.content is None else f"{head}\n\n{fenced(result.content)}"


def _link(result: SessionExported) -> list[ContentBlock]:
    name = result.path.rpartition("/")[2]
    media_type = next((kind for suffix, kind in _TYPES.items() if name.endswith(suffix)), None)
    return [ResourceLink(type="resource_link", name=name, uri=result.uri, mime_type=media_type, size=result.size)]
