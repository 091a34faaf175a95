"""What every run tool does: submit, wait up to a budget with progress, answer with the outcome or a handle."""

import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import anyio
from fastmcp import Context

from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.mcp import results, views
from pyexec.mcp.cancellations import CancellationWatch
from pyexec.mcp.leaving import Leaving
from pyexec.mcp.progress import STEP_SECONDS, Reporter, job

if TYPE_CHECKING:
    from pyexec.benchmarks.service import BenchmarkService
    from pyexec.environments.orders import Answer
    from pyexec.environments.service import EnvironmentService
    from pyexec.executions.cleanup import Cleanup
    from pyexec.executions.retention import Retention
    from pyexec.executions.service import ExecutionService, Reading
    from pyexec.executions.submitted import Submitted
    from pyexec.quality.service import QualityService
    from pyexec.scripts.autosaved import AutosavedScripts
    from pyexec.scripts.library import ScriptLibrary
    from pyexec.sessions.export import SessionExport
    from pyexec.sessions.files import SessionFiles
    from pyexec.sessions.packages import SessionPackages
    from pyexec.sessions.service import SessionService

CLIENT_CANCELLED = "The client cancelled the call."


class ServicesLike(Protocol):
    """The services that tools use."""

    @property
    def executions(self) -> "ExecutionService":
        """Run and look after things."""
        ...

    @property
    def sessions(self) -> "SessionService | None":
        """Look after sessions; None where there can be none."""
        ...

    @property
    def session_packages(self) -> "SessionPackages | None":
        """Give sessions packages; None where there can be none."""
        ...

    @property
    def retention(self) -> "Retention":
        """Remove what has ended."""
        ...

    @property
    def cleanup(self) -> "Cleanup":
        """Clean up."""
        ...

    @property
    def environments(self) -> "EnvironmentService":
        """The environments there are."""
        ...

    @property
    def benchmarks(self) -> "BenchmarkService":
        """Measure things."""
        ...

    @property
    def scripts(self) -> "ScriptLibrary":
        """The script library."""
        ...

    @property
    def autosaved(self) -> "AutosavedScripts":
        """Inline code that was kept."""
        ...

    @property
    def quality(self) -> "QualityService":
        """Format and analyse code."""
        ...

    @property
    def files(self) -> "SessionFiles":
        """The files of sessions."""
        ...

    @property
    def exports(self) -> "SessionExport":
        """Hand out what sessions have run."""
        ...


class ServicesSource(Protocol):
    """Where the services come from, opened on first use."""

    async def get(self) -> ServicesLike:
        """Return the services."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What tools need at hand: services, who asks, the default wait, and whether cells run in sandboxes."""

    services: ServicesSource
    principal: Callable[[], Principal]
    cancellations: CancellationWatch
    wait_seconds: float
    sandboxed: bool
    leaving: Leaving = field(default_factory=Leaving)


async def run(
    desk: Desk, context: Context, request: ExecutionRequest, *, wait_seconds: float | None, max_output_bytes: int | None
) -> results.RunResult:
    """Run something for the caller of a tool."""
    reading, environment = await run_to_reading(
        desk, context, request, wait_seconds=wait_seconds, max_output_bytes=max_output_bytes
    )
    return views.run_result(reading, time.time(), environment)


async def result_of(service: "ExecutionService", execution: Execution) -> results.RunResult:
    """Return the result of an earlier run, as its own tool would answer by now."""
    reading, environment = await service.result_of(execution, None)
    return views.run_result(reading, time.time(), environment)


async def run_to_reading(
    desk: Desk, context: Context, request: ExecutionRequest, *, wait_seconds: float | None, max_output_bytes: int | None
) -> "tuple[Reading, Answer]":
    """Do the same; return what there is to be told."""
    service = (await desk.services.get()).executions
    service.output_budget(max_output_bytes)  # Refused before anything runs, not when the output is there.
    execution = await run_for(desk, context, request, wait_seconds)
    if wait_seconds == 0 and execution.state == "pending":
        return service.as_submitted(execution), await service.environment_of(execution)
    return await service.result_of(execution, max_output_bytes)


async def run_for(desk: Desk, context: Context, request: ExecutionRequest, wait_seconds: float | None) -> Execution:
    """Submit something and wait for its end, as long as the caller wants to; return it as it stands then."""
    with closing(await submit_and_wait(desk, context, request, wait_seconds)) as submitted:
        await submitted.noted()
        return submitted.execution


async def submit_and_wait(
    desk: Desk, context: Context, request: ExecutionRequest, wait_seconds: float | None
) -> "Submitted":
    """Do the same; return what its keeper has said too, which is the caller's to close; see `Submitted.noted`."""
    service = (await desk.services.get()).executions
    principal = desk.principal()
    submitted = await service.submit_to_wait(principal, request)
    try:
        if not submitted.execution.ended and (wait_seconds != 0 or submitted.execution.state != "pending"):
            await _wait(desk, context, service, principal, submitted, wait_seconds)
    except BaseException:
        submitted.close()
        raise
    return submitted


async def _wait(
    desk: Desk,
    context: Context,
    service: "ExecutionService",
    principal: Principal,
    submitted: "Submitted",
    wait_seconds: float | None,
) -> None:
    budget = desk.wait_seconds if wait_seconds is None else wait_seconds
    if budget == 0:
        return
    # Where its own time-out ends it first, what comes of that is worth waiting for.
    ends_itself = 0 < submitted.execution.timeout_seconds <= budget
    deadline = math.inf if ends_itself else anyio.current_time() + budget
    reporter = Reporter(context, job(submitted.execution.id))
    call = desk.cancellations.begin(context)
    try:
        with desk.leaving.wait() as cut_short:
            await reporter.begin()
            while not submitted.execution.ended and (left := deadline - anyio.current_time()) > 0:
                step = min(left, STEP_SECONDS) if reporter.wanted else left
                await service.wait_for_submitted(submitted, step)
                if reporter.wanted and not submitted.was_silent:
                    await _report(reporter, service, submitted.execution)
        if cut_short.cancelled_caught:
            submitted.execution = await service.get(principal, submitted.execution.id)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            if await desk.cancellations.was_cancelled(call):
                await service.stop(principal, submitted.execution.id, "cancel", CLIENT_CANCELLED)
        raise
    finally:
        desk.cancellations.end(call)


async def _report(reporter: Reporter, service: "ExecutionService", execution: Execution) -> None:
    if execution.started_at is None and not execution.ended:
        doing = await service.preparing(execution)
        waited = f"{execution.state} for {time.time() - execution.created_at:.0f} s"
        await reporter.still(doing or waited, news=doing is not None)
        return
    progress = await service.progress_of(execution)
    if progress is not None:
        await reporter.tell(progress, last=execution.ended)
    if not execution.ended:
        await reporter.still(f"running for {execution.elapsed(time.time()):.0f} s")
