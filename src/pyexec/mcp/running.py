"""What every run tool does: submit, wait up to a budget with progress, answer with the outcome or a handle."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio
from fastmcp import Context

from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.mcp import results, views
from pyexec.mcp.cancellations import CancellationWatch

if TYPE_CHECKING:
    from pyexec.environments.orders import Answer
    from pyexec.environments.service import EnvironmentService
    from pyexec.executions.retention import Retention
    from pyexec.executions.service import ExecutionService, Reading

PROGRESS_SECONDS = 5.0
PREPARING_SECONDS = 0.5
CLIENT_CANCELLED = "The client cancelled the call."


class ServicesLike(Protocol):
    """The services that tools use."""

    @property
    def executions(self) -> "ExecutionService":
        """Run and look after things."""
        ...

    @property
    def retention(self) -> "Retention":
        """Remove what has ended."""
        ...

    @property
    def environments(self) -> "EnvironmentService":
        """The environments there are."""
        ...


class ServicesSource(Protocol):
    """Where the services come from, opened on first use."""

    async def get(self) -> ServicesLike:
        """Return the services."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What tools need at hand: services, who asks, and the default wait."""

    services: ServicesSource
    principal: Callable[[], Principal]
    cancellations: CancellationWatch
    wait_seconds: float


async def run(
    desk: Desk, context: Context, request: ExecutionRequest, *, wait_seconds: float | None, max_output_bytes: int | None
) -> results.RunResult:
    """Run something for the caller of a tool."""
    reading, environment = await run_to_reading(
        desk, context, request, wait_seconds=wait_seconds, max_output_bytes=max_output_bytes
    )
    return views.run_result(reading, time.time(), environment)


async def run_to_reading(
    desk: Desk, context: Context, request: ExecutionRequest, *, wait_seconds: float | None, max_output_bytes: int | None
) -> "tuple[Reading, Answer]":
    """Do the same; return what there is to be told."""
    service = (await desk.services.get()).executions
    principal = desk.principal()
    service.output_budget(max_output_bytes)  # Refused before anything runs, not when the output is there.
    execution = await service.submit(principal, request)
    if wait_seconds == 0 and execution.state == "pending":
        return service.as_submitted(execution), await service.environment_of(execution)
    execution = await _wait(desk, context, service, principal, execution, wait_seconds)
    return await service.result_of(execution, max_output_bytes)


async def _wait(
    desk: Desk,
    context: Context,
    service: "ExecutionService",
    principal: Principal,
    execution: Execution,
    wait_seconds: float | None,
) -> Execution:
    budget = desk.wait_seconds if wait_seconds is None else wait_seconds
    if budget == 0:
        return execution
    # Where its own time-out ends it first, what comes of that is worth waiting for.
    ends_itself = 0 < execution.timeout_seconds <= budget
    deadline = math.inf if ends_itself else anyio.current_time() + budget
    request_id = context.request_id
    desk.cancellations.begin(request_id)
    try:
        await _report(context, 0, f"job {execution.id}")
        told, told_at = "", anyio.current_time()
        while not execution.ended and (left := deadline - anyio.current_time()) > 0:
            tick = PREPARING_SECONDS if execution.started_at is None else PROGRESS_SECONDS
            execution = await service.wait_for(execution, min(left, tick))
            if execution.ended:
                break
            doing = await service.preparing(execution) if execution.started_at is None else None
            message = _so_far(execution, doing)
            now = anyio.current_time()
            if (doing and message != told) or now - told_at >= PROGRESS_SECONDS:
                await _report(context, time.time() - execution.created_at, message)
                told, told_at = message, now
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            if await desk.cancellations.was_cancelled(request_id):
                await service.stop(principal, execution.id, "cancel", CLIENT_CANCELLED)
        raise
    finally:
        desk.cancellations.end(request_id)
    return execution


def _so_far(execution: Execution, doing: str | None) -> str:
    if doing is not None:
        return f"job {execution.id}: {doing}"
    if execution.started_at is None:
        return f"job {execution.id}: {execution.state} for {time.time() - execution.created_at:.0f} s"
    return f"job {execution.id}: running for {execution.elapsed(time.time()):.0f} s"


async def _report(context: Context, progress: float, message: str) -> None:
    """Send progress to a client that asked for it; FastMCP looks for other takers too, which costs a millisecond."""
    meta = context.request_context.meta if context.request_context else None
    if meta and "progressToken" in meta:
        await context.report_progress(progress, message=message)
