"""The tools that run Python."""

from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations

from pyexec.domain.executions import ExecutionRequest
from pyexec.mcp import arguments as arg
from pyexec.mcp.answers import answer, has_error
from pyexec.mcp.rendering import render_run
from pyexec.mcp.results import RunResult
from pyexec.mcp.running import Desk, run

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
RUN_SCRIPT_IN_DIR = (
    "Run a Python script, or inline code, in a directory.\n\n"
    "Waits up to wait_seconds (20 by default), then hands back a job_id while the program goes on; for "
    "work of more than 50 s use async_mode and get_job_output."
)
RUN_SCRIPT_WITH_DEPENDENCIES = (
    "Run Python code that needs packages: uv installs them into an environment apart.\n\n"
    "A PEP 723 header in the code counts too. Waits and hands back as run_script_in_dir does."
)

RUNS_CODE = ToolAnnotations(destructive_hint=True, open_world_hint=True)


def add_run_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tools that run Python to the server."""

    async def submit(
        context: Context, request: ExecutionRequest, wait: float | None, limit: int | None, *, markdown: bool
    ) -> ToolResult:
        return await answer(
            lambda: run(desk, context, request, wait_seconds=wait, max_output_bytes=limit),
            render_run,
            RunResult,
            markdown=markdown,
            failed=has_error,
        )

    @server.tool(
        tags={"execution", "sync"},
        output_schema=RunResult.output_schema(),
        annotations=RUNS_CODE,
        description=RUN_SCRIPT_IN_DIR,
    )
    async def run_script_in_dir(
        context: Context,
        *,
        directory: arg.Directory,
        script_path: arg.ScriptPath = None,
        script_content: arg.ScriptContent = None,
        module: arg.Module = None,
        args: arg.Args = None,
        sandboxed: arg.Sandboxed = False,
        use_uv: arg.UseUv = True,
        python_version: arg.PythonVersion = None,
        environment: arg.EnvironmentName = None,
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
        request = ExecutionRequest(
            directory=directory,
            script_path=script_path,
            script_content=script_content,
            module=module,
            args=tuple(args or ()),
            use_uv=use_uv,
            python_version=python_version,
            environment=environment,
            timeout_seconds=timeout_seconds,
            env_vars=env_vars or {},
            env_file=env_file,
            stdin=stdin,
            label=job_label,
            request_id=request_id,
            sandboxed=sandboxed,
        )
        wait = 0 if async_mode else wait_seconds
        return await submit(context, request, wait, max_output_bytes, markdown=markdown_output)

    @server.tool(
        tags={"execution", "dependencies", "sync"},
        output_schema=RunResult.output_schema(),
        annotations=RUNS_CODE,
        description=RUN_SCRIPT_WITH_DEPENDENCIES,
    )
    async def run_script_with_dependencies(
        context: Context,
        *,
        script_content: arg.ScriptContent = None,
        script_path: arg.ScriptPath = None,
        module: arg.Module = None,
        python_version: arg.PythonVersion = None,
        dependencies: arg.Dependencies = None,
        constraints: arg.Constraints = None,
        index_url: arg.IndexUrl = None,
        environment: arg.EnvironmentName = None,
        args: arg.Args = None,
        sandboxed: arg.Sandboxed = False,
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
        request = ExecutionRequest(
            script_path=script_path,
            script_content=script_content,
            module=module,
            args=tuple(args or ()),
            python_version=python_version,
            dependencies=tuple(dependencies or ()),
            constraints=tuple(constraints or ()),
            index_url=index_url,
            environment=environment,
            timeout_seconds=timeout_seconds,
            env_vars=env_vars or {},
            env_file=env_file,
            stdin=stdin,
            label=job_label,
            request_id=request_id,
            sandboxed=sandboxed,
        )
        wait = 0 if async_mode else wait_seconds
        return await submit(context, request, wait, max_output_bytes, markdown=markdown_output)
