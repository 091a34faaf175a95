"""Traces of requests, with OpenTelemetry: what was called and how it went, and nothing of what was in it.

Queries and forms of these endpoints are full of codes and secrets, which the general instrumentation writes down.
"""

from collections.abc import Callable, Collection

import anyio
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NAME = "pyexec-idp"
_CARRIED = {b"traceparent", b"tracestate"}
_METHODS = {"GET", "HEAD", "OPTIONS", "POST"}


class Traces:
    """Makes a span of each request, in the trace of whoever called; sends the last ones off when the server ends."""

    def __init__(self, app: ASGIApp, *, provider: TracerProvider, paths: Collection[str]) -> None:
        self._app = app
        self._tracer = provider.get_tracer(NAME)
        self._finish: Callable[[], None] = provider.shutdown
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":

            async def ending(message: Message) -> None:
                if message["type"] == "lifespan.shutdown.complete":
                    await anyio.to_thread.run_sync(self._finish)
                await send(message)

            await self._app(scope, receive, ending)
            return
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        path = scope["path"] if scope["path"] in self._paths else ""  # Any other may hold whatever was typed.
        carrier = {key.decode(): value.decode("latin-1") for key, value in scope["headers"] if key in _CARRIED}
        with self._tracer.start_as_current_span(
            f"{method} {path}".strip(),
            context=extract(carrier),
            kind=SpanKind.SERVER,
            record_exception=False,  # What an exception says belongs in the log only.
            set_status_on_exception=False,
        ) as span:
            span.set_attribute("http.request.method", method)
            if path:
                span.set_attribute("http.route", path)

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            await self._app(scope, receive, sending)


def traced(app: ASGIApp, paths: Collection[str]) -> ASGIApp:
    """Return the application with spans that go where OTEL_EXPORTER_OTLP_ENDPOINT and its like say."""
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: NAME}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Traces(app, provider=provider, paths=paths)
