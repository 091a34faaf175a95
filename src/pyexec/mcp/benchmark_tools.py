"""The tool that measures."""

import base64
from typing import Annotated, Any

from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from mcp_types import ImageContent
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pyexec.benchmarks.asking import BenchmarkRequest, Variant
from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.executions import ExecutionRequest
from pyexec.mcp import arguments as arg
from pyexec.mcp.answers import answer, has_error
from pyexec.mcp.rendering_benchmark import render_benchmark
from pyexec.mcp.results import RunResult
from pyexec.mcp.results_benchmark import BenchmarkResult
from pyexec.mcp.run_tools import RUNS_CODE
from pyexec.mcp.running import Desk, result_of, run
from pyexec.mcp.views_benchmark import benchmark_result

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
BENCHMARK_SCRIPT = (
    "Measure Python code: wall and CPU time, peak memory, page faults, context switches; or compare variants.\n\n"
    "Waits and hands back as run_script_in_dir does; job_id alone reads an earlier report."
)

Compare = Annotated[
    list[Any],
    BeforeValidator(arg.from_json),
    Field(
        description="To compare with: source text, or objects with name and what differs: script_content, script_path, "
        "args, python_version, dependencies, env_vars"
    ),
]
Runs = Annotated[int | None, Field(description="Default 1; 15 with compare")]
Warmup = Annotated[int | None, Field(description="Uncounted runs first; default 1 if runs > 1")]
SampleInterval = Annotated[float, Field(description="Seconds between looks at memory")]
Plot = Annotated[bool, Field(description="Also as a PNG")]
Earlier = Annotated[str | None, Field(description="An earlier benchmark")]


class _VariantArgument(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    script_path: str | None = None
    script_content: str | None = None
    args: arg.Texts | None = None
    python_version: str | None = None
    dependencies: arg.Texts | None = None
    env_vars: arg.TextMap | None = None


def add_benchmark_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tool that measures to the server."""

    @server.tool(
        tags={"benchmark", "performance", "sync"},
        output_schema=BenchmarkResult.output_schema(),
        annotations=RUNS_CODE,
        description=BENCHMARK_SCRIPT,
    )
    async def benchmark_script(
        context: Context,
        *,
        script_content: arg.ScriptContent = None,
        script_path: arg.ScriptPath = None,
        directory: arg.OptionalDirectory = None,
        args: arg.Args = None,
        python_version: arg.PythonVersion = None,
        dependencies: arg.Dependencies = None,
        environment: arg.EnvironmentName = None,
        timeout_seconds: Annotated[float, Field(description="For each run; 0: none")] = 0,
        env_vars: arg.EnvVars = None,
        env_file: arg.EnvFile = None,
        runs: Runs = None,
        warmup: Warmup = None,
        sample_interval: SampleInterval = 0.05,
        compare: Compare | None = None,
        plot: Plot = False,
        job_id: Earlier = None,
        wait_seconds: arg.WaitSeconds = None,
        async_mode: arg.AsyncMode = False,
        job_label: arg.JobLabel = None,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        program = ExecutionRequest(
            directory=directory,
            script_path=script_path,
            script_content=script_content,
            args=tuple(args or ()),
            python_version=python_version,
            dependencies=tuple(dependencies or ()),
            environment=environment,
            timeout_seconds=timeout_seconds,
            env_vars=env_vars or {},
            env_file=env_file,
            label=job_label,
        )
        pictures: list[bytes] = []

        async def work() -> BenchmarkResult:
            if job_id is not None:
                if script_content is not None or script_path is not None:
                    raise InvalidArgumentError("job_id was given, and something to measure as well.")
                done = await _earlier(desk, job_id)
            else:
                request = BenchmarkRequest(
                    program=program,
                    runs=runs,
                    warmup=warmup,
                    interval=sample_interval,
                    compare=tuple(_variant(one, number) for number, one in enumerate(compare or (), 2)),
                    plot=plot,
                )
                execution = (await desk.services.get()).benchmarks.request(request)
                wait = 0 if async_mode else wait_seconds
                done = await run(desk, context, execution, wait_seconds=wait, max_output_bytes=None)
            return await _reported(desk, done, pictures)

        told = await answer(
            work,
            render_benchmark,
            BenchmarkResult,
            markdown=markdown_output,
            failed=has_error,
        )
        told.content += [_image(picture) for picture in pictures]
        return told


async def _earlier(desk: Desk, job_id: str) -> RunResult:
    services = await desk.services.get()
    execution = await services.benchmarks.get(desk.principal(), job_id)
    return await result_of(services.executions, execution)


async def _reported(desk: Desk, done: RunResult, pictures: list[bytes]) -> BenchmarkResult:
    """Add what was found; a picture goes out once, as content of its own."""
    benchmarks = (await desk.services.get()).benchmarks
    execution = await benchmarks.get(desk.principal(), done.job_id)
    findings = await benchmarks.findings(desk.principal(), execution)
    pictures += [findings.plot] if findings.plot is not None else []
    return benchmark_result(done, findings.report)


def _variant(value: Any, number: int) -> Variant:
    """Read one variant; one without a name is called by its place."""
    given = {"script_content": value} if isinstance(value, str) else value
    try:
        told = _VariantArgument.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        allowed = ", ".join(_VariantArgument.model_fields)
        raise InvalidArgumentError(
            f"compare: variant {number}: {where}: {first['msg']}.", hint=f"A variant may have: {allowed}."
        ) from None
    return Variant(
        name=told.name if told.name is not None else f"variant {number}",
        script_path=told.script_path,
        script_content=told.script_content,
        args=None if told.args is None else tuple(told.args),
        python_version=told.python_version,
        dependencies=None if told.dependencies is None else tuple(told.dependencies),
        env_vars=told.env_vars or {},
    )


def _image(png: bytes) -> ImageContent:
    return ImageContent(type="image", data=base64.b64encode(png).decode("ascii"), mime_type="image/png")
