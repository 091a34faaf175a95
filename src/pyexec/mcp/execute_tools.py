"""The tool that runs Python as a notebook does."""

import base64
import time
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastmcp import FastMCP
from fastmcp.server.dependencies import get_context
from fastmcp.tools import ToolResult
from mcp_types import ContentBlock, ImageContent, ResourceLink
from pydantic import Field

from pyexec.domain.errors import NotFoundError
from pyexec.domain.executions import ExecutionRequest, Harness
from pyexec.domain.sandboxes import GUEST_NEEDS
from pyexec.domain.turns import Turn
from pyexec.mcp import arguments as arg
from pyexec.mcp.answers import answer, has_error
from pyexec.mcp.rendering_execute import render_python
from pyexec.mcp.results_execute import PythonResult
from pyexec.mcp.run_tools import RUNS_CODE
from pyexec.mcp.running import Desk, submit_and_wait
from pyexec.mcp.views_execute import PICTURES, is_picture, picture_part, python_result
from pyexec.sandbox.guest import GUEST_MAIN

if TYPE_CHECKING:
    from pyexec.executions.service import ExecutionService
    from pyexec.executions.submitted import Submitted

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
_ANSWERS = (
    "Answers with the last expression's value, output, figures as pictures with their numbers, tables by their first "
    "rows, files as links. Top-level await, %magics and !commands work."
)
IN_A_SANDBOX = (
    "Run Python as a notebook cell does, in a sandbox: no network, no files of this machine; gone afterwards, or kept "
    "as a session.\n\n"
    f"{_ANSWERS} numpy, pandas, polars, scipy, scikit-learn, matplotlib and more are there."
)
ON_THE_HOST = (
    "Run Python as a notebook cell does, in a fresh interpreter on this machine (no sandbox).\n\n"
    f"{_ANSWERS} Name packages in dependencies."
)
KIND = "cell"
TIMEOUT_SECONDS = 30.0
LINKS = 20

Code = Annotated[str, Field(description="Python; the value of its last expression is the result")]


def add_execute_tools(server: FastMCP, desk: Desk) -> None:
    """Add `execute_python` to the server: for sandboxes, or for the host where the operator has said so."""
    add = _add_for_sandboxes if desk.sandboxed else _add_for_the_host
    add(server, desk)


def _add_for_sandboxes(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"execution", "sync"},
        output_schema=PythonResult.output_schema(),
        annotations=RUNS_CODE,
        description=IN_A_SANDBOX,
    )
    async def execute_python(
        *,
        code: Code,
        session_id: arg.OptionalSessionId = None,
        dependencies: arg.Dependencies = None,
        python_version: arg.PythonVersion = None,
        environment: arg.EnvironmentName = None,
        timeout_seconds: arg.TimeoutSeconds = TIMEOUT_SECONDS,
        env_vars: arg.EnvVars = None,
        stdin: arg.Stdin = None,
        wait_seconds: arg.WaitSeconds = None,
        job_label: arg.JobLabel = None,
        max_output_bytes: arg.MaxOutputBytes = None,
        request_id: arg.RequestId = None,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        request = ExecutionRequest(
            kind=KIND,
            script_content=code,
            session_id=session_id,
            dependencies=tuple(dependencies) if dependencies else None,
            python_version=python_version,
            environment=environment,
            timeout_seconds=timeout_seconds,
            env_vars=env_vars or {},
            stdin=stdin,
            label=job_label,
            request_id=request_id,
            harness=Harness(guest=True),
            sandboxed=True,
        )
        return await _answer(desk, request, _Asked(wait_seconds, max_output_bytes, markdown_output))


def _add_for_the_host(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"execution", "sync"},
        output_schema=PythonResult.output_schema(),
        annotations=RUNS_CODE,
        description=ON_THE_HOST,
    )
    async def execute_python(
        *,
        code: Code,
        dependencies: arg.Dependencies = None,
        python_version: arg.PythonVersion = None,
        environment: arg.EnvironmentName = None,
        directory: arg.OptionalDirectory = None,
        timeout_seconds: arg.TimeoutSeconds = TIMEOUT_SECONDS,
        env_vars: arg.EnvVars = None,
        stdin: arg.Stdin = None,
        wait_seconds: arg.WaitSeconds = None,
        job_label: arg.JobLabel = None,
        max_output_bytes: arg.MaxOutputBytes = None,
        request_id: arg.RequestId = None,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        needs = () if environment is not None and not dependencies else (*GUEST_NEEDS, *(dependencies or ()))
        request = ExecutionRequest(
            kind=KIND,
            directory=directory,
            script_content=code,
            python_version=python_version,
            dependencies=needs,
            environment=environment,
            timeout_seconds=timeout_seconds,
            env_vars=env_vars or {},
            stdin=stdin,
            label=job_label,
            request_id=request_id,
            harness=Harness(options=(str(GUEST_MAIN),), guest=True),
        )
        return await _answer(desk, request, _Asked(wait_seconds, max_output_bytes, markdown_output))


class _Asked(NamedTuple):
    """How the caller wants the answer."""

    wait_seconds: float | None
    max_output_bytes: int | None
    markdown: bool


async def _answer(desk: Desk, request: ExecutionRequest, asked: _Asked) -> ToolResult:
    context = get_context()  # As a parameter it costs the machinery for all that could be injected.

    async def work() -> PythonResult:
        service = (await desk.services.get()).executions
        service.output_budget(asked.max_output_bytes)  # Refused before anything runs, not when the output is there.
        with closing(await submit_and_wait(desk, context, request, asked.wait_seconds)) as submitted:
            result, turn = await _result(service, submitted, request, asked)
            if await submitted.noted():
                result, turn = await _result(service, submitted, request, asked)
        if turn is not None and turn.displays:
            result.pictures.extend(await _pictures(desk, result.job_id, turn))
        return result

    return await answer(
        work,
        render_python,
        PythonResult,
        markdown=asked.markdown,
        failed=has_error,
        more=_more,
    )


async def _result(
    service: "ExecutionService", submitted: "Submitted", request: ExecutionRequest, asked: _Asked
) -> tuple[PythonResult, Turn | None]:
    """Return the result, which may be just being written down, without its pictures; and what the guest said."""
    cell = await service.cell_of(submitted, asked.max_output_bytes)
    directory = None if request.sandboxed else submitted.execution.directory
    return python_result(cell.reading, time.time(), cell.environment, cell.turn, cell.artifacts, directory), cell.turn


async def _pictures(desk: Desk, job_id: str, turn: Turn) -> list[tuple[str, bytes]]:
    service = (await desk.services.get()).executions
    found: list[tuple[str, bytes]] = []
    for display in turn.displays:
        part = picture_part(display)
        if part is None or len(found) == PICTURES:
            continue
        try:
            data = part.data or await service.read_artifact(desk.principal(), job_id, part.file or "")
        except NotFoundError:
            continue  # The program has taken it away.
        if is_picture(part.media_type, data):
            found.append((part.media_type, data))
    return found


def _more(result: PythonResult) -> list[ContentBlock]:
    pictures: list[ContentBlock] = [
        ImageContent(type="image", mime_type=media_type, data=base64.b64encode(data).decode("ascii"))
        for media_type, data in result.pictures
    ]
    links = [
        ResourceLink(type="resource_link", name=file.name, uri=file.uri, mime_type=file.media_type, size=file.size)
        for file in result.files or []
        if file.uri.startswith("job-file:") and not file.media_type.startswith("image/")
    ]
    return [*pictures, *links[:LINKS]]
