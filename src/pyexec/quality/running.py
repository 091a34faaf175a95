"""Running a tool as an execution, which is gone when its answer has been read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from pyexec.domain.errors import ToolFailedError
from pyexec.domain.executions import Execution, ExecutionRequest, Harness
from pyexec.domain.principals import Principal
from pyexec.executions.advice import advice_for, error_of
from pyexec.executions.retention import Retention
from pyexec.executions.service import ExecutionService
from pyexec.quality import start
from pyexec.quality.tools import REQUIREMENTS, Order

KIND = "quality"
TOOL_SECONDS = 120.0
LOOK_SECONDS = 0.5
ANSWER_BYTES = 64 * 1024 * 1024
SAID_CHARACTERS = 600

Say = Callable[[str], Awaitable[None]]
"""Hears what is going on while a tool is being installed."""

_ISOLATED = Harness(options=("-I", "-X", "utf8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a tool said; `exit_code` is its own."""

    exit_code: int
    stdout: bytes = field(repr=False)
    stderr: str = field(repr=False)


class ToolRunner:
    """Runs tools, each in an environment that is made the first time.

    Args:
        executions: The engine.
        retention: Removes what has been read.
        directory: Where they run: a folder of ours, whose settings for uv are nobody's project's.
        wait_seconds: How long a caller waits for a tool that is still being installed.
    """

    def __init__(
        self, executions: ExecutionService, retention: Retention, directory: Path, wait_seconds: float
    ) -> None:
        self._executions = executions
        self._retention = retention
        self._directory = directory
        self._wait_seconds = wait_seconds

    async def run(self, principal: Principal, order: Order, say: Say | None = None) -> Answered:
        """Run a tool to its end and return what it said; nothing of it is kept.

        Raises:
            ToolFailedError: It cannot be installed, is not installed yet, took too long or said too much.
        """
        execution = await self._executions.submit(principal, _request(order, self._directory))
        try:
            ended = await self._ended(order, execution, say)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._executions.stop(principal, execution.id, "kill", "Nobody waits for it any more.")
                await self._retention.discard(principal, execution.id)
            raise
        try:
            return await self._answer(principal, order, ended)
        finally:
            with anyio.CancelScope(shield=True):
                await self._retention.discard(principal, execution.id)

    async def _ended(self, order: Order, execution: Execution, say: Say | None) -> Execution:
        """Wait for the end; only installing has a limit here, for once it runs its own time-out ends it."""
        until = anyio.current_time() + self._wait_seconds
        told: str | None = None
        while not execution.ended:
            execution = await self._executions.wait_for(execution, LOOK_SECONDS)
            if execution.ended or execution.started_at is not None:
                continue
            if anyio.current_time() > until:
                # The job goes on, so that the tool is there the next time.
                raise ToolFailedError(
                    f"{order.tool} is still being installed, by job {execution.id}.",
                    hint="Call again in a moment; nothing is lost.",
                )
            doing = await self._executions.preparing(execution)
            if say is not None and doing and doing != told:
                told = doing
                await say(f"{order.tool}: {doing}")
        return execution

    async def _answer(self, principal: Principal, order: Order, execution: Execution) -> Answered:
        streams = {"stdout": bytearray(), "stderr": bytearray()}
        async for piece in self._executions.follow(principal, execution.id, to_end=False):
            streams[piece.stream] += piece.data
            if piece.gap or len(streams[piece.stream]) > ANSWER_BYTES:
                raise ToolFailedError(
                    f"{order.tool} said more than is kept of a program's output.",
                    hint="Look at fewer files at a time, or raise PYEXEC_KEPT_OUTPUT_MB.",
                )
        stderr = streams["stderr"].decode("utf-8", "replace")
        outcome = execution.outcome
        if outcome is None or outcome.kind != "exited" or outcome.exit_code is None:
            why = error_of(execution, stderr) or "It did not end by itself."
            raise ToolFailedError(f"{order.tool} could not be run. {why}", hint=advice_for(execution, stderr))
        return Answered(exit_code=outcome.exit_code, stdout=bytes(streams["stdout"]), stderr=stderr)


def failed(order: Order, answered: Answered) -> ToolFailedError:
    """Return the error for a tool that ran and said that it could not do its part."""
    said = answered.stderr.strip() or answered.stdout[-SAID_CHARACTERS:].decode("utf-8", "replace").strip()
    return ToolFailedError(
        f"{order.tool} failed with exit code {answered.exit_code}: {said[-SAID_CHARACTERS:] or 'it said nothing'}",
        hint="Its settings in the project may be what it does not like.",
    )


def _request(order: Order, directory: Path) -> ExecutionRequest:
    in_a_file = () if order.settings is None else (start.IN_A_FILE, order.settings)
    return ExecutionRequest(
        kind=KIND,
        directory=str(directory),
        script_path=start.__file__,
        args=(*in_a_file, order.tool, *order.args),
        dependencies=(REQUIREMENTS[order.tool],),
        timeout_seconds=TOOL_SECONDS,
        stdin=order.stdin,
        label=order.tool,
        harness=_ISOLATED,
    )
