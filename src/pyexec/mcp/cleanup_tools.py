"""The tool that cleans up."""

from typing import Annotated

from fastmcp import FastMCP
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from pyexec.mcp import arguments as arg
from pyexec.mcp.answers import answer
from pyexec.mcp.results import Result
from pyexec.mcp.running import Desk

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
CLEANUP_JOBS = "Remove ended jobs, autosaved sources and stale temporary files; says what and how much."

REMOVES = ToolAnnotations(destructive_hint=True, idempotent_hint=True)

Age = Annotated[float, Field(description="Only what is older")]
DryRun = Annotated[bool, Field(description="Only say what would go")]


class RemovedRow(BaseModel):
    """What was removed of one kind."""

    kind: str
    count: int
    bytes: int


class CleanedUp(Result):
    """What was removed, or would be; `freed_bytes` is the sum."""

    dry_run: bool = False
    removed: list[RemovedRow] = Field(default_factory=list[RemovedRow])
    freed_bytes: int = 0


def add_cleanup_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tool that cleans up to the server."""

    @server.tool(
        tags={"jobs", "control"}, output_schema=CleanedUp.output_schema(), annotations=REMOVES, description=CLEANUP_JOBS
    )
    async def cleanup_jobs(
        *, max_age_hours: Age = 24, dry_run: DryRun = False, markdown_output: arg.MarkdownOutput = True
    ) -> ToolResult:
        async def work() -> CleanedUp:
            cleanup = (await desk.services.get()).cleanup
            removals = await cleanup.clean(desk.principal(), max_age_hours=max_age_hours, dry_run=dry_run)
            rows = [RemovedRow(kind=one.kind, count=one.count, bytes=one.size) for one in removals]
            return CleanedUp(dry_run=dry_run, removed=rows, freed_bytes=sum(row.bytes for row in rows))

        return await answer(work, _render, CleanedUp, markdown=markdown_output)


def _render(result: CleanedUp) -> str:
    done = "Would remove" if result.dry_run else "Removed"
    rows = [f"- {row.count} {row.kind.replace('_', ' ')} ({row.bytes} bytes)" for row in result.removed]
    return f"{done}, {result.freed_bytes} bytes in all:\n\n" + "\n".join(rows)
