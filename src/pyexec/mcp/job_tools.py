"""The tools and the resource that look after jobs."""

import time
from contextlib import suppress
from typing import Annotated

from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError
from fastmcp.resources import ResourceContent, ResourceResult
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations
from pydantic import Field

from pyexec.domain.cursors import Cursor
from pyexec.domain.errors import InvalidArgumentError, PyexecError
from pyexec.domain.executions import STATES, State
from pyexec.mcp import arguments as arg
from pyexec.mcp import rendering, results, views
from pyexec.mcp.answers import answer
from pyexec.mcp.running import Desk
from pyexec.storage.artifacts import media_type_of

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
GET_JOB_OUTPUT = "Read all output of a job so far; long output by its head and tail."
PY_JOB_STATUS = "Show a job's state and what it printed since a cursor."
JOB_FILE = "A file that a job's tool has made: a notebook, a flame graph, a plot."
JOB_STREAM = "What a job has printed so far, both streams."
LIST_RUNNING_JOBS = "List the jobs that run or wait."
PY_LIST_JOBS = "List jobs, newest first."
PY_CANCEL_JOB = "End a job with all its processes: interrupt, then TERM, then KILL; its output is kept."
KILL_JOB = "Kill a job with all its processes at once; its output is kept."
PY_PRUNE_JOBS = "Remove ended jobs and their output."

READS = ToolAnnotations(read_only_hint=True)
ENDS = ToolAnnotations(destructive_hint=True, idempotent_hint=True)
MOST_LISTED = 500

StatusFilter = Annotated[str | None, Field(description="One of: " + ", ".join(STATES))]
Limit = Annotated[int, Field(description=f"1 to {MOST_LISTED}")]
MaxAgeHours = Annotated[float | None, Field(description="Only jobs that ended longer ago; null: all")]


def add_job_reading_tools(server: FastMCP, desk: Desk) -> None:
    """Add what everybody needs who starts jobs: reading and ending them."""
    _add_get_job_output(server, desk)
    add_py_job_status(server, desk)
    _add_resources(server, desk)
    add_py_cancel_job(server, desk)
    _add_kill_job(server, desk)


def add_job_listing_tools(server: FastMCP, desk: Desk) -> None:
    """Add what looks after all jobs together."""
    _add_list_running_jobs(server, desk)
    add_py_list_jobs(server, desk)
    add_py_prune_jobs(server, desk)


def _add_get_job_output(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"jobs", "introspection"},
        output_schema=results.JobOutput.output_schema(),
        annotations=READS,
        description=GET_JOB_OUTPUT,
    )
    async def get_job_output(
        *, job_id: arg.JobId, max_output_bytes: arg.MaxOutputBytes = None, markdown_output: arg.MarkdownOutput = True
    ) -> ToolResult:
        async def work() -> results.JobOutput:
            service = (await desk.services.get()).executions
            reading = await service.read(desk.principal(), job_id, max_bytes=max_output_bytes)
            told = views.job_output(reading, time.time(), await service.environment_of(reading.execution))
            turn = await service.turn_of(reading.execution)
            if turn is not None:
                told.result = turn.value
                told.files = [
                    f"job-file://{told.job_id}/{file.name}"
                    for file in await service.artifacts(desk.principal(), told.job_id)
                ] or None
            return told

        return await answer(work, rendering.render_output, results.JobOutput, markdown=markdown_output)


def add_py_job_status(server: FastMCP, desk: Desk) -> None:
    """Add the tool that shows a job's state."""

    @server.tool(
        tags={"jobs", "introspection"},
        output_schema=results.JobStatus.output_schema(),
        annotations=READS,
        description=PY_JOB_STATUS,
    )
    async def py_job_status(
        *,
        job_id: arg.JobId,
        incremental: Annotated[bool, Field(description="Only output since cursor")] = True,
        cursor: arg.CursorText = None,
        max_output_bytes: arg.MaxOutputBytes = None,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        async def work() -> results.JobStatus:
            since = (Cursor.decode(cursor) if cursor else Cursor()) if incremental else None
            service = (await desk.services.get()).executions
            reading = await service.read(desk.principal(), job_id, since=since, max_bytes=max_output_bytes)
            if reading.execution.state == "pending":
                progress = views.preparation_progress(await service.preparing(reading.execution))
            else:
                progress = await service.progress_of(reading.execution)
            returned = await service.returned_by(reading.execution)
            return views.job_status(reading, time.time(), progress, returned)

        return await answer(work, rendering.render_status, results.JobStatus, markdown=markdown_output)


def _add_resources(server: FastMCP, desk: Desk) -> None:
    @server.resource("job-stream://{job_id}", mime_type="text/plain", description=JOB_STREAM)
    async def job_stream(job_id: str) -> str:
        try:
            service = (await desk.services.get()).executions
            output = (await service.read(desk.principal(), job_id)).output
        except PyexecError as error:
            raise ResourceError(f"{error.code}: {error.sentence()}") from error
        return f"---STDOUT---\n{output.stdout.text}\n---STDERR---\n{output.stderr.text}"

    @server.resource("job-file://{job_id}/{name}", description=JOB_FILE)
    async def job_file(job_id: str, name: str) -> ResourceResult:
        try:
            service = (await desk.services.get()).executions
            content = await service.read_artifact(desk.principal(), job_id, name)
        except PyexecError as error:
            raise ResourceError(f"{error.code}: {error.sentence()}") from error
        return ResourceResult([_as_resource(name, content)])


def _add_list_running_jobs(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"jobs", "introspection"},
        output_schema=results.RunningJobs.output_schema(),
        annotations=READS,
        description=LIST_RUNNING_JOBS,
    )
    async def list_running_jobs(*, markdown_output: arg.MarkdownOutput = True) -> ToolResult:
        async def work() -> results.RunningJobs:
            service = (await desk.services.get()).executions
            active = await service.active(desk.principal())
            rows = [
                views.running_job(execution, time.time(), await service.count_chunks(execution))
                for execution in reversed(active)
            ]
            return results.RunningJobs(result=rows)

        return await answer(work, rendering.render_running, results.RunningJobs, markdown=markdown_output)


def add_py_list_jobs(server: FastMCP, desk: Desk) -> None:
    """Add the tool that lists jobs."""

    @server.tool(
        tags={"jobs", "introspection"},
        output_schema=results.JobList.output_schema(),
        annotations=READS,
        description=PY_LIST_JOBS,
    )
    async def py_list_jobs(
        *, status_filter: StatusFilter = None, limit: Limit = 50, markdown_output: arg.MarkdownOutput = True
    ) -> ToolResult:
        async def work() -> results.JobList:
            states = _states(status_filter)
            if not 1 <= limit <= MOST_LISTED:
                raise InvalidArgumentError(f"limit is {limit}; it must be between 1 and {MOST_LISTED}.")
            service = (await desk.services.get()).executions
            found, total = await service.newest(desk.principal(), states=states, limit=limit)
            now, progress = time.time(), await service.progress_of_active(found)
            jobs = [views.job(execution, now, progress=progress.get(execution.id)) for execution in found]
            return results.JobList(jobs=jobs, total=total)

        return await answer(work, rendering.render_list, results.JobList, markdown=markdown_output)


def add_py_cancel_job(server: FastMCP, desk: Desk) -> None:
    """Add the tool that ends a job gently."""

    @server.tool(
        tags={"jobs", "control"},
        output_schema=results.JobEnded.output_schema(),
        annotations=ENDS,
        description=PY_CANCEL_JOB,
    )
    async def py_cancel_job(*, job_id: arg.JobId, markdown_output: arg.MarkdownOutput = True) -> ToolResult:
        async def work() -> results.JobEnded:
            return await end_job(desk, job_id, kill=False)

        return await answer(work, rendering.render_ended, results.JobEnded, markdown=markdown_output)


def _add_kill_job(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"jobs", "control"}, output_schema=results.JobEnded.output_schema(), annotations=ENDS, description=KILL_JOB
    )
    async def kill_job(*, job_id: arg.JobId, markdown_output: arg.MarkdownOutput = True) -> ToolResult:
        async def work() -> results.JobEnded:
            return await end_job(desk, job_id, kill=True)

        return await answer(work, rendering.render_ended, results.JobEnded, markdown=markdown_output)


def add_py_prune_jobs(server: FastMCP, desk: Desk) -> None:
    """Add the tool that removes ended jobs."""

    @server.tool(
        tags={"jobs", "control"},
        output_schema=results.Pruned.output_schema(),
        annotations=ENDS,
        description=PY_PRUNE_JOBS,
    )
    async def py_prune_jobs(
        *,
        keep_completed: Annotated[bool, Field(description="Spare those that succeeded")] = False,
        keep_failed: Annotated[bool, Field(description="Spare all others")] = False,
        max_age_hours: MaxAgeHours = 24,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        async def work() -> results.Pruned:
            retention = (await desk.services.get()).retention
            pruned = await retention.prune(
                desk.principal(), keep_completed=keep_completed, keep_failed=keep_failed, max_age_hours=max_age_hours
            )
            return results.Pruned(removed=pruned.removed, remaining=pruned.remaining)

        return await answer(work, rendering.render_pruned, results.Pruned, markdown=markdown_output)


async def end_job(desk: Desk, job_id: str, *, kill: bool) -> results.JobEnded:
    """End a job; one that had ended before stays as it is, and the answer says so."""
    service = (await desk.services.get()).executions
    before = await service.get(desk.principal(), job_id)
    after = await service.stop(desk.principal(), job_id, "kill" if kill else "cancel", "")
    outcome = after.outcome
    if before.ended or after.state != "cancelled":
        note = "It had already ended; nothing was done." if after.ended else "It has not ended yet; ask again."
        return results.JobEnded(
            job_id=job_id, status=after.state, exit_code=outcome.exit_code if outcome else None, note=note
        )
    return results.JobEnded(
        job_id=job_id, status="killed" if kill else "cancelled", exit_code=outcome.exit_code if outcome else None
    )


def _as_resource(name: str, content: bytes) -> ResourceContent:
    """Hand text out as text, so that a model can read it; everything else as a blob."""
    media_type = media_type_of(name)
    if media_type.startswith("text/") or media_type.endswith(("json", "jsonl", "xml")):
        with suppress(UnicodeDecodeError):
            return ResourceContent(content.decode("utf-8"), mime_type=media_type)
    return ResourceContent(content, mime_type=media_type)


def _states(status_filter: str | None) -> tuple[State, ...] | None:
    if status_filter is None:
        return None
    wanted: tuple[State, ...] = tuple(state for state in STATES if state == status_filter)
    if not wanted:
        raise InvalidArgumentError(f"status_filter is {status_filter!r}; it must be one of {', '.join(STATES)}.")
    return wanted
