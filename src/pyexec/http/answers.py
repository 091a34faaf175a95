"""What is answered to requests that go no further."""

from collections.abc import Mapping

from starlette.responses import JSONResponse, Response
from starlette.types import Scope

MCP_PATH = "/mcp"
_INVALID_REQUEST = -32600


def refusal(scope: Scope, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a refusal as the caller can read it: a JSON-RPC error where MCP is spoken, else our code and sentence."""
    if is_mcp(scope):
        error = {"code": _INVALID_REQUEST, "message": message, "data": {"error_code": code}}
        content = {"jsonrpc": "2.0", "id": None, "error": error}
    else:
        content = {"error": message, "error_code": code}
    return JSONResponse(content, status, {"Cache-Control": "no-store", **(headers or {})})


def is_mcp(scope: Scope) -> bool:
    """Tell whether MCP is spoken where a request goes."""
    return scope["path"] in (MCP_PATH, f"{MCP_PATH}/")
