"""Metrics for Prometheus. Every label has few values, and none that a caller can choose."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal

MEDIA_TYPE = CONTENT_TYPE_LATEST
METHODS = frozenset({"GET", "POST", "DELETE", "OPTIONS", "HEAD"})
_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_LONG = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400)


class Metrics:
    """Counts what is asked and what is run, by one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._requests = Counter(
            "pyexec_http_requests", "Requests.", ("route", "method", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "pyexec_http_request_seconds",
            "Until answers were whole.",
            ("route",),
            buckets=_QUICK,
            registry=self._registry,
        )
        self._open = Gauge("pyexec_http_open_requests", "Requests that are being answered.", registry=self._registry)
        self._submitted = Counter(
            "pyexec_executions_submitted", "Executions handed over.", ("where",), registry=self._registry
        )
        self._refused = Counter(
            "pyexec_executions_refused", "Executions refused.", ("error_code",), registry=self._registry
        )
        self._ended = Counter("pyexec_executions_ended", "Executions ended.", ("state",), registry=self._registry)
        self._waited = Histogram(
            "pyexec_execution_wait_seconds", "Until they began.", buckets=_LONG, registry=self._registry
        )
        self._ran = Histogram("pyexec_execution_seconds", "From begin to end.", buckets=_LONG, registry=self._registry)

    def begin_request(self) -> None:
        """Count a request that is being answered."""
        self._open.inc()

    def end_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count it as answered; `route` is one of those there are, whatever the caller asked for."""
        self._open.dec()
        self._requests.labels(route, method if method in METHODS else "other", f"{status // 100}xx").inc()
        self._seconds.labels(route).observe(seconds)

    def submitted(self, _principal: Principal, _execution: Execution, request: ExecutionRequest) -> None:
        """Count an execution that was handed over."""
        self._submitted.labels("sandbox" if request.sandboxed else "host").inc()

    def refused(self, _principal: Principal, _request: ExecutionRequest, code: str) -> None:
        """Count one that was refused."""
        self._refused.labels(code).inc()

    def ended(self, execution: Execution) -> None:
        """Count one that has ended."""
        self._ended.labels(execution.state).inc()
        outcome = execution.outcome
        if execution.started_at is not None and outcome is not None:
            self._waited.observe(max(0.0, execution.started_at - execution.created_at))
            self._ran.observe(max(0.0, outcome.ended_at - execution.started_at))

    def text(self) -> bytes:
        """Return all of them as Prometheus reads them."""
        return generate_latest(self._registry)
