"""What clients and browsers get wrong on their way to `/mcp`, put right before anything is answered."""

import json
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyexec.http.answers import MCP_PATH, is_mcp, refusal

JSON = "application/json"
EVENTS = "text/event-stream"
SESSION_HEADER = "mcp-session-id"
_METHODS = "POST, DELETE, OPTIONS"

BROWSER = """\
This is an MCP server. An MCP client talks to it with POST at this address; there is nothing to see for a browser.
"""
NOT_ACCEPTABLE = (
    f"Answers come as {JSON} or {EVENTS}, and the Accept header allows neither. Send Accept: {JSON}, {EVENTS}."
)

_NO_ANSWER = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "No answer."}}).encode()


class Doorway:
    """Takes `/mcp/` for `/mcp`, explains itself to browsers, and answers in a form that the client accepts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] != "http" or not is_mcp(scope):
            await self._app(scope, receive, send)
            return
        scope = {**scope, "path": MCP_PATH, "raw_path": MCP_PATH.encode()}
        headers = Headers(scope=scope)
        if scope["method"] == "GET" and SESSION_HEADER not in headers:
            await _explain()(scope, receive, send)
            return
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        wants_json, wants_events = accepted(headers.getlist("accept"))
        if not wants_json and not wants_events:
            await refusal(scope, 406, "not_acceptable", NOT_ACCEPTABLE)(scope, receive, send)
            return
        # What follows wants to hear that both will do, and chooses by itself.
        scope["headers"] = _with_accept(scope, f"{JSON}, {EVENTS}")
        if not (wants_json and wants_events):
            send = _Converted(send, _to_json if wants_json else _to_events, EVENTS if wants_json else JSON).send
        await self._app(scope, receive, send)


def accepted(values: list[str]) -> tuple[bool, bool]:
    """Tell whether JSON and whether events are accepted; who says nothing accepts anything."""
    ranges: dict[str, bool] = {}
    for part in ",".join(values).lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name:
            ranges[name] = not any(_is_zero(parameter) for parameter in parameters)
    if not ranges:
        return True, True
    json_is, events_are = (
        next((ranges[name] for name in (exact, f"{exact.partition('/')[0]}/*", "*/*") if name in ranges), False)
        for exact in (JSON, EVENTS)
    )
    return json_is, events_are


def _is_zero(parameter: str) -> bool:
    name, _equals, value = parameter.partition("=")
    return name.strip() == "q" and not value.strip().strip("0.")


def _explain() -> ASGIApp:
    allow = {"Allow": _METHODS, "Cache-Control": "no-store"}
    return PlainTextResponse(BROWSER, 405, allow)


def _with_accept(scope: Scope, value: str) -> list[tuple[bytes, bytes]]:
    others = [(name, given) for name, given in scope["headers"] if name != b"accept"]
    return [*others, (b"accept", value.encode())]


class _Converted:
    """Sends an answer in the other of its two forms, once it is whole."""

    def __init__(self, send: Send, convert: Callable[[bytes], bytes], converted_type: str) -> None:
        self._send = send
        self._convert = convert
        self._converted_type = converted_type
        self._start: Message | None = None
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            given = Headers(raw=message["headers"]).get("content-type", "")
            if given.startswith(self._converted_type) and message["status"] == 200:
                self._start = message
                return
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._finish(self._start)
            return
        await self._send(message)

    async def _finish(self, start: Message) -> None:
        body = self._convert(bytes(self._body))
        headers = MutableHeaders(raw=list(start["headers"]))
        headers["content-type"] = JSON if self._converted_type == EVENTS else EVENTS
        headers["content-length"] = str(len(body))
        await self._send({**start, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def _to_json(events: bytes) -> bytes:
    """Return the answer that a stream ended with."""
    found = b""
    for line in events.splitlines():
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data:
            found = data
    return (
        found or json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "No answer."}}).encode()
    )


def _to_events(body: bytes) -> bytes:
    return b"event: message\r\ndata: " + body.replace(b"\n", b"") + b"\r\n\r\n"
