"""The tools of the script library."""

from typing import Annotated

from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations
from pydantic import Field

from pyexec.domain.executions import ExecutionRequest
from pyexec.mcp import arguments as arg
from pyexec.mcp import rendering_scripts as rendering
from pyexec.mcp import results_scripts as results
from pyexec.mcp import views_scripts as views
from pyexec.mcp.answers import answer, has_error
from pyexec.mcp.rendering import render_run
from pyexec.mcp.results import RunResult
from pyexec.mcp.running import Desk, run
from pyexec.scripts.drafts import Draft

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
SAVE_SCRIPT = "Keep a script under a name, with a PEP 723 header; scripts can import each other."
RUN_SAVED_SCRIPT = "Run a saved script with what its header asks for. Waits and hands back as run_script_in_dir does."
PY_LIST_SCRIPTS = "List the saved scripts: what they do and need, their last run."
PY_VIEW_SCRIPT = "Show the source of a saved script, or of inline code that was run."
DELETE_SCRIPT = "Delete a saved script."

READS = ToolAnnotations(read_only_hint=True)
KEEPS = ToolAnnotations(destructive_hint=True, idempotent_hint=True)
RUNS_CODE = ToolAnnotations(destructive_hint=True, open_world_hint=True)
MOST_AUTOSAVED = 50

NewName = Annotated[str, Field(description="Letters, digits, '_' and '-'; no path")]
ScriptName = Annotated[str, Field(description="As py_list_scripts shows it")]
Source = Annotated[str, Field(description="Python source")]
RequiresPython = Annotated[str | None, Field(description="Such as >=3.11")]
Description = Annotated[str | None, Field(description="Becomes the docstring")]
Overwrite = Annotated[bool, Field(description="Replace one of that name")]
IncludeAutosaved = Annotated[bool, Field(description="Inline code that was run, too")]
Autosaved = Annotated[bool, Field(description="Look among inline code that was run")]


def add_scripts_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tools of the script library to the server."""
    _add_changing(server, desk)
    _add_running(server, desk)
    _add_reading(server, desk)


def _add_changing(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"scripts", "control"},
        output_schema=results.ScriptSaved.output_schema(),
        annotations=KEEPS,
        description=SAVE_SCRIPT,
    )
    async def save_script(
        *,
        script_name: NewName,
        source: Source,
        dependencies: arg.Dependencies = None,
        requires_python: RequiresPython = None,
        description: Description = None,
        overwrite: Overwrite = False,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        async def work() -> results.ScriptSaved:
            library = (await desk.services.get()).scripts
            draft = Draft(
                source=source,
                dependencies=tuple(dependencies or ()),
                requires_python=requires_python,
                description=description,
            )
            saved = await library.save(desk.principal(), script_name, draft, overwrite=overwrite)
            return results.ScriptSaved(script=views.saved_script(saved))

        return await answer(work, rendering.render_saved, results.ScriptSaved, markdown=markdown_output)

    @server.tool(
        tags={"scripts", "control"},
        output_schema=results.ScriptDeleted.output_schema(),
        annotations=KEEPS,
        description=DELETE_SCRIPT,
    )
    async def delete_script(*, script_name: ScriptName, markdown_output: arg.MarkdownOutput = True) -> ToolResult:
        async def work() -> results.ScriptDeleted:
            path = await (await desk.services.get()).scripts.delete(desk.principal(), script_name)
            return results.ScriptDeleted(name=path.stem, path=str(path))

        return await answer(work, rendering.render_deleted, results.ScriptDeleted, markdown=markdown_output)


def _add_running(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"scripts", "execution"},
        output_schema=RunResult.output_schema(),
        annotations=RUNS_CODE,
        description=RUN_SAVED_SCRIPT,
    )
    async def run_saved_script(
        context: Context,
        *,
        script_name: ScriptName,
        args: arg.Args = None,
        directory: arg.OptionalDirectory = None,
        timeout_seconds: arg.TimeoutSeconds = 0,
        env_vars: arg.EnvVars = None,
        env_file: arg.EnvFile = None,
        stdin: arg.Stdin = None,
        wait_seconds: arg.WaitSeconds = None,
        async_mode: arg.AsyncMode = False,
        job_label: arg.JobLabel = None,
        max_output_bytes: arg.MaxOutputBytes = None,
        request_id: arg.RequestId = None,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        async def work() -> RunResult:
            script = await (await desk.services.get()).scripts.get(desk.principal(), script_name)
            request = ExecutionRequest(
                directory=directory,
                script_path=str(script.path),
                args=tuple(args or ()),
                timeout_seconds=timeout_seconds,
                env_vars=env_vars or {},
                env_file=env_file,
                stdin=stdin,
                label=job_label or script.name,
                request_id=request_id,
            )
            wait = 0 if async_mode else wait_seconds
            return await run(desk, context, request, wait_seconds=wait, max_output_bytes=max_output_bytes)

        return await answer(work, render_run, RunResult, markdown=markdown_output, failed=has_error)


def _add_reading(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"scripts", "introspection"},
        output_schema=results.Scripts.output_schema(),
        annotations=READS,
        description=PY_LIST_SCRIPTS,
    )
    async def py_list_scripts(
        *, include_autosaved: IncludeAutosaved = False, markdown_output: arg.MarkdownOutput = True
    ) -> ToolResult:
        async def work() -> results.Scripts:
            return await list_scripts(desk, include_autosaved=include_autosaved)

        return await answer(work, rendering.render_scripts, results.Scripts, markdown=markdown_output)

    @server.tool(
        tags={"scripts", "introspection"},
        output_schema=results.ScriptSource.output_schema(),
        annotations=READS,
        description=PY_VIEW_SCRIPT,
    )
    async def py_view_script(
        *, script_name: ScriptName, autosaved: Autosaved = False, markdown_output: arg.MarkdownOutput = True
    ) -> ToolResult:
        async def work() -> results.ScriptSource:
            return await view_script(desk, script_name, autosaved=autosaved)

        return await answer(work, rendering.render_source, results.ScriptSource, markdown=markdown_output)


async def list_scripts(desk: Desk, *, include_autosaved: bool) -> results.Scripts:
    """List what there is, each with its last run."""
    services, principal = await desk.services.get(), desk.principal()
    saved = await services.scripts.entries(principal)
    last_runs = await services.executions.last_runs(principal, [one.path for one in saved])
    if not include_autosaved:
        return views.scripts(saved, last_runs)
    autosaved = await services.autosaved.entries(principal, MOST_AUTOSAVED)
    ids = [one.last_job_id for one in autosaved if one.last_job_id]
    return views.scripts(saved, last_runs, autosaved, await services.executions.those(principal, ids))


async def view_script(desk: Desk, name: str, *, autosaved: bool) -> results.ScriptSource:
    """Return a source; of inline code with what is told about its runs."""
    services, principal = await desk.services.get(), desk.principal()
    if autosaved:
        path, source, sidecar = await services.autosaved.source(principal, name)
        return results.ScriptSource(name=path.stem, path=str(path), source=source, sidecar=sidecar)
    script, source = await services.scripts.source(principal, name)
    return results.ScriptSource(name=script.name, path=str(script.path), source=source)
