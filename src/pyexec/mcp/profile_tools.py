"""The tool that measures a program."""

from typing import Annotated

from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from pydantic import Field

from pyexec.domain.executions import ExecutionRequest
from pyexec.mcp import arguments as arg
from pyexec.mcp.answers import answer, has_error
from pyexec.mcp.rendering_profile import render_profile
from pyexec.mcp.results import RunResult
from pyexec.mcp.results_profile import ProfileResult
from pyexec.mcp.run_tools import RUNS_CODE
from pyexec.mcp.running import Desk, result_of, run
from pyexec.mcp.views_profile import profile_result
from pyexec.profiles.modes import Mode
from pyexec.profiles.requests import measured, profile_of, require_profile, require_top

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
PROFILE_SCRIPT = (
    "Run Python code and show what takes its time (pyinstrument), its calls (cProfile) or its memory (memray).\n\n"
    "Runs as run_script_with_dependencies does; leaves a flame graph as a job-file resource."
)

What = Annotated[Mode, Field(description="What to measure")]
Top = Annotated[int, Field(description="Rows to show, 1 to 200")]
ProfiledJob = Annotated[str | None, Field(description="Show the profile of this job; runs nothing")]


def add_profile_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tool that measures a program to the server."""

    @server.tool(
        tags={"execution", "profiles"},
        output_schema=ProfileResult.output_schema(),
        annotations=RUNS_CODE,
        description=PROFILE_SCRIPT,
    )
    async def profile_script(
        context: Context,
        *,
        mode: What = "time",
        top: Top = 15,
        job_id: ProfiledJob = None,
        script_content: arg.ScriptContent = None,
        script_path: arg.ScriptPath = None,
        directory: arg.OptionalDirectory = None,
        args: arg.Args = None,
        use_uv: arg.UseUv = True,
        python_version: arg.PythonVersion = None,
        dependencies: arg.Dependencies = None,
        environment: arg.EnvironmentName = None,
        timeout_seconds: arg.TimeoutSeconds = 0,
        env_vars: arg.EnvVars = None,
        env_file: arg.EnvFile = None,
        stdin: arg.Stdin = None,
        wait_seconds: arg.WaitSeconds = None,
        async_mode: arg.AsyncMode = False,
        job_label: arg.JobLabel = None,
        request_id: arg.RequestId = None,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        request = ExecutionRequest(
            directory=directory,
            script_path=script_path,
            script_content=script_content,
            args=tuple(args or ()),
            use_uv=use_uv,
            python_version=python_version,
            dependencies=None if dependencies is None else tuple(dependencies),
            environment=environment,
            timeout_seconds=timeout_seconds,
            env_vars=env_vars or {},
            env_file=env_file,
            stdin=stdin,
            label=job_label,
            request_id=request_id,
        )
        wait = 0 if async_mode else wait_seconds

        async def work() -> ProfileResult:
            require_top(top)
            if job_id is not None:
                done = await _known(desk, job_id, wait)
            else:
                done = await run(desk, context, measured(request, mode), wait_seconds=wait, max_output_bytes=None)
            return await _with_profile(desk, done, top)

        return await answer(
            work,
            render_profile,
            ProfileResult,
            markdown=markdown_output,
            failed=has_error,
        )


async def _known(desk: Desk, job_id: str, wait: float | None) -> RunResult:
    service = (await desk.services.get()).executions
    execution = await service.get(desk.principal(), job_id)
    require_profile(execution)
    execution = await service.wait_for(execution, desk.wait_seconds if wait is None else wait)
    return await result_of(service, execution)


async def _with_profile(desk: Desk, done: RunResult, top: int) -> ProfileResult:
    service = (await desk.services.get()).executions
    principal = desk.principal()
    execution = await service.get(principal, done.job_id)
    if not execution.ended or done.status != execution.state:
        return profile_result(done, None, (), top)
    profile = await profile_of(service, principal, execution)
    files = [one.name for one in await service.artifacts(principal, execution.id)]
    return profile_result(done, profile, files, top)
