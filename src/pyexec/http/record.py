"""What is written down of each request: its id, which the client is told too, what it came to, how long it took."""

import logging
import re
import secrets
import time
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyexec.http.answers import MCP_PATH
from pyexec.http.drain import ALWAYS
from pyexec.observability.metrics import Metrics
from pyexec.observability.requests import begin_request, end_request

HEADER = b"x-request-id"
OTHER = "other"
_EVENTS = re.compile(r"/executions/[^/]+/events")
_ROUTES: Mapping[str, str] = {
    MCP_PATH: MCP_PATH,
    f"{MCP_PATH}/": MCP_PATH,
    "/openapi.json": "/openapi.json",
    **{path: path for path in ALWAYS},
}

_log = logging.getLogger("pyexec.http")


class Record:
    """Gives every request an id, and writes down what became of it."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        status = 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # A list of its own: some are shared by all answers of a kind.
                message = {**message, "headers": [*message.get("headers", []), (HEADER, request_id.encode())]}
            await send(message)

        route, begun, token = route_of(scope["path"]), time.perf_counter(), begin_request(request_id)
        self._metrics.begin_request()
        try:
            await self._app(scope, receive, noted)
        finally:
            seconds = time.perf_counter() - begun
            self._metrics.end_request(route, scope["method"], status, seconds)
            level = logging.DEBUG if route in ALWAYS else logging.INFO
            # Not the path as it came: its query may hold what is nobody's business.
            _log.log(level, "%s %s answered with %d after %.1f ms", scope["method"], route, status, seconds * 1000)
            end_request(token)


def route_of(path: str) -> str:
    """Return which of the routes there are a path means."""
    if _EVENTS.fullmatch(path):
        return "/executions/{id}/events"
    return _ROUTES.get(path, OTHER)
