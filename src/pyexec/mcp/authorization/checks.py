"""The last look before a tool runs or a resource is read: does the token of this request cover it?

The door (`guard`) has answered 403 already to whoever lacks a scope; it only looks at messages as they come over the
wire. This is behind whatever the protocol does with them.
"""

from typing import Any

from fastmcp.exceptions import AuthorizationError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult

from pyexec.auth import scopes
from pyexec.mcp.authorization import needs
from pyexec.mcp.authorization.callers import current_identity
from pyexec.mcp.rendering import render_error

CODE = "insufficient_scope"


class ScopeChecks(Middleware):
    """Lets through what the token of the request covers."""

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Check a call."""
        name = str(context.message.name)
        needed = needs.of_tool(name)
        if needed is None and context.fastmcp_context is not None:
            # One that does not exist is answered as such; one that nobody gave a scope is for nobody else.
            needed = scopes.ADMIN if await context.fastmcp_context.fastmcp.get_tool(name) is not None else None
        if needed is None or scopes.holds(current_identity().scopes, needed):
            return await call_next(context)
        message = f"The token does not cover this: it needs the scope {needed}."
        structured = {"error": message, "error_code": CODE}
        return ToolResult(content=render_error(CODE, message, None), structured_content=structured, is_error=True)

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Check a read."""
        needed = scopes.of_resource(str(context.message.uri))
        if not scopes.holds(current_identity().scopes, needed):
            raise AuthorizationError(f"The token does not cover this: it needs the scope {needed}.")
        return await call_next(context)
