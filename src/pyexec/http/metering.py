"""`/metrics`: behind a token beside everything else, or on a listener of its own."""

import secrets

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pyexec.observability.metrics import MEDIA_TYPE, Metrics

PATH = "/metrics"


class MetricsBehindToken:
    """Tells metrics to who knows the token, and leaves everything else to what comes next."""

    def __init__(self, app: ASGIApp, token: str, metrics: Metrics) -> None:
        self._app = app
        self._token = token
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        scheme, _space, given = Headers(scope=scope).get("authorization", "").partition(" ")
        known = scheme.lower() == "bearer" and secrets.compare_digest(given.strip().encode(), self._token.encode())
        await (_told(self._metrics) if known else _refused())(scope, receive, send)


def metrics_app(metrics: Metrics) -> Starlette:
    """Return a server of nothing but metrics."""

    async def answer(_request: Request) -> Response:
        return _told(metrics)

    return Starlette(routes=[Route(PATH, answer)])


def _refused() -> Response:
    refused = {"error": "The token of the metrics is needed.", "error_code": "unauthorized"}
    return JSONResponse(refused, 401, {"WWW-Authenticate": 'Bearer realm="metrics"'})


def _told(metrics: Metrics) -> Response:
    return Response(metrics.text(), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})
