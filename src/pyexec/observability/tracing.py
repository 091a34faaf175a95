"""Traces by OpenTelemetry: what FastMCP tells of a tool's call goes on to the queue, the run and the result.

Needs the extra `otel`. Where spans are sent, and everything else, is told by OpenTelemetry's own variables.
"""

from collections import OrderedDict
from importlib.metadata import version

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal

MOST_KNOWN = 10_000
_NANOSECONDS = 1_000_000_000


class Traces:
    """Sends spans, until it is closed. Ids, states and durations are told; never code, names of people, or output."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        resource = Resource.create({"service.name": "pyexec", "service.version": version("mcp-pyexec")})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        # For FastMCP, which takes the one of the process.
        trace.set_tracer_provider(self._provider)
        self._tracer = self._provider.get_tracer("pyexec")
        self._calls: OrderedDict[str, trace.SpanContext] = OrderedDict()

    def submitted(self, _principal: Principal, execution: Execution, _request: ExecutionRequest) -> None:
        """Remember which call an execution belongs to."""
        span = trace.get_current_span()
        span.set_attribute("pyexec.execution_id", execution.id)
        self._calls[execution.id] = span.get_span_context()
        if len(self._calls) > MOST_KNOWN:
            self._calls.popitem(last=False)

    def refused(self, _principal: Principal, _request: ExecutionRequest, code: str) -> None:
        """Tell why a call came to nothing."""
        trace.get_current_span().set_attribute("pyexec.error_code", code)

    def ended(self, execution: Execution) -> None:
        """Tell how long it waited, ran, and took to be noticed."""
        outcome = execution.outcome
        if outcome is None:
            return
        call = self._calls.pop(execution.id, None)
        parent = trace.set_span_in_context(trace.NonRecordingSpan(call)) if call is not None else None
        begun = execution.started_at if execution.started_at is not None else outcome.ended_at
        steps = (
            ("pyexec.queue", execution.created_at, begun),
            ("pyexec.run", begun, outcome.ended_at),
            ("pyexec.result", outcome.ended_at, None),
        )
        for name, start, end in steps:
            span = self._tracer.start_span(name, parent, start_time=int(start * _NANOSECONDS))
            span.set_attribute("pyexec.execution_id", execution.id)
            span.set_attribute("pyexec.state", execution.state)
            span.end(None if end is None else int(end * _NANOSECONDS))

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()
