"""The tools that start Python and do not wait for it."""

from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult

from pyexec.domain.executions import ExecutionRequest
from pyexec.mcp import arguments as arg
from pyexec.mcp.answers import answer
from pyexec.mcp.rendering import render_started
from pyexec.mcp.results import Started
from pyexec.mcp.run_tools import RUNS_CODE
from pyexec.mcp.running import Desk, run
from pyexec.mcp.views import started

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
RUN_SCRIPT_IN_DIR_ASYNC = "Start what run_script_in_dir runs, as a job; returns its job_id at once."
RUN_SCRIPT_WITH_DEPENDENCIES_ASYNC = "Start what run_script_with_dependencies runs, as a job; returns its job_id."


def add_start_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tools that start Python to the server."""

    async def start(context: Context, request: ExecutionRequest, *, markdown: bool) -> ToolResult:
        async def work() -> Started:
            return started(await run(desk, context, request, wait_seconds=0, max_output_bytes=None), request)

        return await answer(work, render_started, Started, markdown=markdown)

    @server.tool(
        tags={"execution", "async", "stream"},
        output_schema=Started.output_schema(),
        annotations=RUNS_CODE,
        description=RUN_SCRIPT_IN_DIR_ASYNC,
    )
    async def run_script_in_dir_async(
        context: Context,
        *,
        directory: arg.Directory,
        script_path: arg.ScriptPath = None,
        script_content: arg.ScriptContent = None,
        args: arg.Args = None,
        sandboxed: arg.Sandboxed = False,
        use_uv: arg.UseUv = True,
        python_version: arg.PythonVersion = None,
        env_vars: arg.EnvVars = None,
        env_file: arg.EnvFile = None,
        stream: arg.Stream = True,
        job_label: arg.JobLabel = None,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        request = ExecutionRequest(
            directory=directory,
            script_path=script_path,
            script_content=script_content,
            args=tuple(args or ()),
            use_uv=use_uv,
            python_version=python_version,
            env_vars=env_vars or {},
            env_file=env_file,
            stream=stream,
            label=job_label,
            sandboxed=sandboxed,
        )
        return await start(context, request, markdown=markdown_output)

    @server.tool(
        tags={"execution", "dependencies", "async", "stream"},
        output_schema=Started.output_schema(),
        annotations=RUNS_CODE,
        description=RUN_SCRIPT_WITH_DEPENDENCIES_ASYNC,
    )
    async def run_script_with_dependencies_async(
        context: Context,
        *,
        script_content: arg.ScriptContent = None,
        script_path: arg.ScriptPath = None,
        python_version: arg.PythonVersion = None,
        dependencies: arg.Dependencies = None,
        args: arg.Args = None,
        sandboxed: arg.Sandboxed = False,
        env_vars: arg.EnvVars = None,
        env_file: arg.EnvFile = None,
        stream: arg.Stream = True,
        job_label: arg.JobLabel = None,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        request = ExecutionRequest(
            script_path=script_path,
            script_content=script_content,
            args=tuple(args or ()),
            python_version=python_version,
            dependencies=tuple(dependencies or ()),
            env_vars=env_vars or {},
            env_file=env_file,
            stream=stream,
            label=job_label,
            sandboxed=sandboxed,
        )
        return await start(context, request, markdown=markdown_output)
