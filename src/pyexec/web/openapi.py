"""`/openapi.json`: what the plain routes take and answer."""

from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pyexec.web.events import PATH as EVENTS

PATH = "/openapi.json"


def _answer(description: str, schema: dict[str, Any], media_type: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {media_type: {"schema": schema}}}


_STATUS: dict[str, Any] = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "error_code": {"type": "string"}},
    "required": ["error", "error_code"],
}
_CURSOR = {"type": "string", "maxLength": 128}
_REFUSED = {
    "400": _answer("The cursor is none of this server's.", _ERROR),
    "401": _answer("Nobody knows who asks.", _ERROR),
    "403": _answer("Called from where, or by a name by which, it may not be.", _ERROR),
    "404": _answer("There is no such execution, or it is somebody else's.", _ERROR),
    "429": _answer("Too many requests; Retry-After says when to come back.", _ERROR),
    "503": _answer("The server is ending, or not ready yet.", _ERROR),
}

DESCRIPTION: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "pyexec", "version": version("mcp-pyexec")},
    "paths": {
        "/healthz": {
            "get": {"operationId": "healthz", "responses": {"200": _answer("It lives.", _STATUS)}},
        },
        "/readyz": {
            "get": {
                "operationId": "readyz",
                "responses": {
                    "200": _answer("It takes work.", _STATUS),
                    "503": _answer("It is ending, or not ready yet.", _STATUS),
                },
            },
        },
        EVENTS: {
            "get": {
                "operationId": "execution_events",
                "description": "What an execution prints, as server-sent events: state, output, end.",
                "parameters": [
                    {"name": "execution_id", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "cursor", "in": "query", "schema": _CURSOR},
                    {"name": "Last-Event-ID", "in": "header", "schema": _CURSOR},
                ],
                "responses": {
                    "200": _answer("The events from the cursor on.", {"type": "string"}, "text/event-stream"),
                    "204": {"description": "The end has been read; do not come back."},
                    **_REFUSED,
                },
            },
        },
    },
}


async def openapi(_request: Request) -> Response:
    """Answer with the description."""
    return JSONResponse(DESCRIPTION)
