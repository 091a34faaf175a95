"""What happened, counted for Prometheus. Every label has few values, and none that a caller can choose."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEDIA_TYPE = CONTENT_TYPE_LATEST
OTHER = "other"
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST"})
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counts what this process is asked; `events` tells how often each kind of thing happened."""

    def __init__(self, events: Callable[[], Mapping[str, int]]) -> None:
        self._registry = registry = CollectorRegistry()
        registry.register(_Events(events))
        ProcessCollector(registry=registry)
        self._requests = Counter(
            "pyexec_idp_http_requests", "Requests.", ("route", "method", "status"), registry=registry
        )
        self._seconds = Histogram(
            "pyexec_idp_http_request_seconds",
            "Until answers were whole.",
            ("route",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._open = Gauge("pyexec_idp_http_open_requests", "Requests that are being answered.", registry=registry)

    def begin_request(self) -> None:
        """Count a request that is being answered."""
        self._open.inc()

    def end_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count it as answered; `route` is one of those there are, whatever the caller asked for."""
        self._open.dec()
        self._requests.labels(route, method if method in _METHODS else OTHER, f"{status // 100}xx").inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all of them as Prometheus reads them."""
        return generate_latest(self._registry)


class Counted:
    """Counts each request, whatever becomes of it."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, paths: Collection[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        route = scope["path"] if scope["path"] in self._paths else OTHER  # Any other may be whatever was typed.
        status = 500  # What is answered where something went wrong before there was an answer.
        began = time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.begin_request()
        try:
            await self._app(scope, receive, sending)
        finally:
            self._metrics.end_request(route, scope["method"], status, time.perf_counter() - began)


class _Events(Collector):
    def __init__(self, counts: Callable[[], Mapping[str, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[CounterMetricFamily]:
        events = CounterMetricFamily("pyexec_idp_events", "What happened, by kind.", labels=["event"])
        for kind, number in sorted(self._counts().items()):
            events.add_metric([kind], number)
        yield events
