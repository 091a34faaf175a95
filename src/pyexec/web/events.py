"""`GET /executions/{id}/events`: what an execution prints, pushed as server-sent events.

Events are `state` (pending, running), `output` (text of one stream) and, last, `end`. The id of an event is the cursor
after it: who comes back with it as `Last-Event-ID` reads on from there, and nothing comes twice or is left out.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pyexec.domain.cursors import Cursor
from pyexec.domain.errors import InvalidArgumentError, NotFoundError, PyexecError
from pyexec.domain.principals import Principal
from pyexec.executions.subscriptions import Step, Subscriptions
from pyexec.http.identity import NotKnownError

PATH = "/executions/{execution_id}/events"
PING_SECONDS = 15
"""Proxies take a stream on which nothing comes for a dead one; most wait for a minute."""

ENDED = ".end"
"""Follows the cursor in the id of the last event, so that who comes back with it is told to stop."""

# Some readers take these for the end of a line; JSON may hold them, and as escapes they are what they were.
_ESCAPES = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def execution_events(
    subscriptions: Callable[[], Awaitable[Subscriptions]], principal_of: Callable[[Request], Principal]
) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers `GET /executions/{id}/events`."""

    async def answer(request: Request) -> Response:
        try:
            principal = principal_of(request)
            last = request.headers.get("last-event-id") or request.query_params.get("cursor") or ""
            since = Cursor.decode(last.removesuffix(ENDED)) if last else Cursor()
            execution_id = request.path_params["execution_id"]
            steps = await (await subscriptions()).follow(principal, execution_id, since)
        except NotKnownError as error:
            return error.response
        except PyexecError as error:
            return refused(error)
        if last.endswith(ENDED):
            return Response(status_code=204)  # What makes a browser stop coming back.
        return EventSourceResponse(
            _events(steps), ping=PING_SECONDS, headers={"Cache-Control": "no-cache, no-transform"}
        )

    return answer


def refused(error: PyexecError) -> Response:
    """Return how a plain route says no."""
    status = 404 if isinstance(error, NotFoundError) else 400 if isinstance(error, InvalidArgumentError) else 503
    headers = {"Cache-Control": "no-store"}
    return JSONResponse({"error": error.sentence(), "error_code": error.code}, status, headers)


async def _events(steps: AsyncIterator[Step]) -> AsyncIterator[ServerSentEvent]:
    async for step in steps:
        yield _event(step)


def _event(step: Step) -> ServerSentEvent:
    cursor = step.cursor.encode()
    if step.ended is not None:
        outcome = step.ended.outcome
        end: dict[str, Any] = {"status": step.state}
        if outcome is not None:
            end |= {"exit_code": outcome.exit_code, "signal": outcome.signal, "reason": outcome.reason}
        return _made("end", cursor + ENDED, end)
    if step.state is not None:
        return _made("state", cursor, {"status": step.state})
    output: dict[str, Any] = {"stream": step.stream, "text": step.text}
    if step.gap:
        output["gap_bytes"] = step.gap
    return _made("output", cursor, output)


def _made(name: str, event_id: str, data: dict[str, Any]) -> ServerSentEvent:
    told = {key: value for key, value in data.items() if value is not None}
    return ServerSentEvent(json.dumps(told, ensure_ascii=False).translate(_ESCAPES), event=name, id=event_id)
