"""Who hears what a server over HTTP runs."""

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.domain.service import ServiceSettings
from pyexec.executions.observing import ExecutionObserver
from pyexec.observability.audit import AuditLog
from pyexec.observability.metrics import Metrics
from pyexec.settings import Settings

if TYPE_CHECKING:
    from pyexec.observability.tracing import Traces

TRACING = "pyexec.observability.tracing"


class Observers:
    """Tells several."""

    def __init__(self, observers: Sequence[ExecutionObserver]) -> None:
        self._observers = observers

    def submitted(self, principal: Principal, execution: Execution, request: ExecutionRequest) -> None:
        """See `ExecutionObserver`."""
        for one in self._observers:
            one.submitted(principal, execution, request)

    def refused(self, principal: Principal, request: ExecutionRequest, code: str) -> None:
        """See `ExecutionObserver`."""
        for one in self._observers:
            one.refused(principal, request, code)

    def ended(self, execution: Execution) -> None:
        """See `ExecutionObserver`."""
        for one in self._observers:
            one.ended(execution)


def audit_log(settings: Settings, chosen: ServiceSettings) -> AuditLog:
    """Return where what is run is written down."""
    return AuditLog(chosen.audit or settings.home / "audit.jsonl")


def open_traces(chosen: ServiceSettings) -> "Traces | None":
    """Return what sends traces; None where nobody wants them.

    Raises:
        InvalidArgumentError: They are wanted, and what they need is not installed.
    """
    if not chosen.traces:
        return None
    try:
        # Not before: who wants none need not have it.
        tracing = importlib.import_module(TRACING)
    except ImportError as error:
        raise InvalidArgumentError(
            f"PYEXEC_TRACES is on, and {error.name} is not installed.",
            hint="Install mcp-pyexec[otel].",
        ) from error
    traces: Traces = tracing.Traces()
    return traces


def observers(audit: AuditLog, metrics: Metrics, traces: "Traces | None") -> Observers:
    """Return all of them as one."""
    return Observers([audit, metrics, *([traces] if traces is not None else [])])
