"""Benchmarks: asking for one, and reading what it has found."""

from dataclasses import dataclass

from anyio.to_thread import run_sync

from pyexec.benchmarks.asking import KIND, SAMPLES, BenchmarkRequest, execution_request
from pyexec.benchmarks.plot import PLOT
from pyexec.benchmarks.report import Report, read_report
from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.executions.service import ExecutionService

PLOT_BYTES = 4 * 1024 * 1024
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a benchmark has found so far; `plot` is a PNG."""

    report: Report | None = None
    plot: bytes | None = None


class BenchmarkService:
    """Benchmarks are executions, and are waited for, read and cancelled as such."""

    def __init__(self, executions: ExecutionService, timeout_ceiling: float) -> None:
        self._executions = executions
        self._timeout_ceiling = timeout_ceiling

    def request(self, request: BenchmarkRequest) -> ExecutionRequest:
        """Return the execution to submit.

        Raises:
            InvalidArgumentError: A value is not allowed.
        """
        return execution_request(request, self._timeout_ceiling)

    async def get(self, principal: Principal, execution_id: str) -> Execution:
        """Return the execution of a benchmark.

        Raises:
            NotFoundError: This principal has no such execution.
            InvalidArgumentError: It is no benchmark.
        """
        execution = await self._executions.get(principal, execution_id)
        if execution.kind != KIND:
            raise InvalidArgumentError(
                f"Job {execution.id} is no benchmark.", hint="get_job_output reads what any job has printed."
            )
        return execution

    async def findings(self, principal: Principal, execution: Execution) -> Findings:
        """Return what it has found; nothing before it has ended, or where it has left nothing that makes sense."""
        if not execution.ended:
            return Findings()
        samples = await self._read(principal, execution, SAMPLES)
        report = None if samples is None else await run_sync(read_report, samples)
        plot = await self._read(principal, execution, PLOT) if report is not None and report.variants else None
        if plot is not None and (not plot.startswith(_PNG) or len(plot) > PLOT_BYTES):
            plot = None
        return Findings(report=report, plot=plot)

    async def _read(self, principal: Principal, execution: Execution, name: str) -> bytes | None:
        try:
            return await self._executions.read_artifact(principal, execution.id, name)
        except NotFoundError:
            return None
