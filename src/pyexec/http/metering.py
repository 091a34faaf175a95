"""`/metrics`: behind a token beside everything else, or on a listener of its own."""

import secrets

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pyexec.http.health import Handler
from pyexec.observability.metrics import MEDIA_TYPE, Metrics

PATH = "/metrics"


def metrics_behind(token: str, metrics: Metrics) -> Handler:
    """Return what tells metrics to who knows the token."""

    async def answer(request: Request) -> Response:
        scheme, _space, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secrets.compare_digest(given.strip().encode(), token.encode()):
            refused = {"error": "The token of the metrics is needed.", "error_code": "unauthorized"}
            return JSONResponse(refused, 401, {"WWW-Authenticate": 'Bearer realm="metrics"'})
        return _told(metrics)

    return answer


def metrics_app(metrics: Metrics) -> Starlette:
    """Return a server of nothing but metrics."""

    async def answer(_request: Request) -> Response:
        return _told(metrics)

    return Starlette(routes=[Route(PATH, answer)])


def _told(metrics: Metrics) -> Response:
    return Response(metrics.text(), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})
