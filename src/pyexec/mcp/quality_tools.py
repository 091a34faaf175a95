"""The tools that format and analyse code."""

from functools import partial
from typing import Annotated

from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations
from pydantic import Field

from pyexec.domain.errors import InvalidArgumentError
from pyexec.mcp import arguments as arg
from pyexec.mcp.answers import answer, has_error
from pyexec.mcp.progress import Reporter
from pyexec.mcp.rendering_quality import render_analysed, render_formatted
from pyexec.mcp.results_quality import AnalysedCode, FormattedCode
from pyexec.mcp.running import Desk
from pyexec.mcp.views_quality import SHOWN, Show, analysed, formatted

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
FORMAT_CODE = "Format Python source, or a file by its project's settings; write=true replaces the file."
ANALYZE_CODE = (
    "Find faults in Python source, a file or a folder: rule, place, severity, fix.\n\n"
    "Tools: ruff, bandit (security), basedpyright (types; only when asked for)."
)

CHANGES_FILES = ToolAnnotations(destructive_hint=True, idempotent_hint=True)

Source = Annotated[str | None, Field(description="Source; or path")]
CodePath = Annotated[str | None, Field(description="File; or source")]
AnalysedPath = Annotated[str | None, Field(description="File or folder; or source")]
Formatter = Annotated[str, Field(description="ruff or black")]
Shown = Annotated[str, Field(description=f"One of: {', '.join(SHOWN)}")]
Tools = Annotated[arg.Texts | None, Field(description="Default: ruff, bandit")]
DoFix = Annotated[bool, Field(description="Apply ruff's safe fixes first")]
MostFindings = Annotated[int, Field(description="Most findings in the answer")]


def add_quality_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tools that format and analyse code to the server."""
    _add_formatting(server, desk)
    _add_analysing(server, desk)


def _add_formatting(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"quality"},
        output_schema=FormattedCode.output_schema(),
        annotations=CHANGES_FILES,
        description=FORMAT_CODE,
    )
    async def format_code(
        context: Context,
        *,
        source: Source = None,
        path: CodePath = None,
        directory: arg.OptionalDirectory = None,
        formatter: Formatter = "ruff",
        line_length: int | None = None,
        show: Shown = "all",
        write: bool = False,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        reporter = Reporter(context, "format_code")

        async def work() -> FormattedCode:
            shown = _shown(show)
            quality = (await desk.services.get()).quality
            done = await quality.format(
                desk.principal(),
                source=source,
                path=path,
                directory=directory,
                formatter=formatter,
                line_length=line_length,
                write=write,
                say=partial(reporter.still, news=True),
            )
            return formatted(done, shown)

        return await answer(
            work,
            render_formatted,
            FormattedCode,
            markdown=markdown_output,
            failed=has_error,
        )


def _add_analysing(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"quality"},
        output_schema=AnalysedCode.output_schema(),
        annotations=CHANGES_FILES,
        description=ANALYZE_CODE,
    )
    async def analyze_code(
        context: Context,
        *,
        source: Source = None,
        path: AnalysedPath = None,
        directory: arg.OptionalDirectory = None,
        tools: Tools = None,
        fix: DoFix = False,
        limit: MostFindings = 100,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        reporter = Reporter(context, "analyze_code")

        async def work() -> AnalysedCode:
            quality = (await desk.services.get()).quality
            analysis = await quality.analyse(
                desk.principal(),
                source=source,
                path=path,
                directory=directory,
                tools=tools,
                fix=fix,
                limit=limit,
                say=partial(reporter.still, news=True),
            )
            return analysed(analysis)

        return await answer(work, render_analysed, AnalysedCode, markdown=markdown_output)


def _shown(text: str) -> Show:
    found = SHOWN.get(text)
    if found is None:
        raise InvalidArgumentError(f"show is {text!r}; it must be one of {', '.join(SHOWN)}.")
    return found
