"""Telling when a client has had its first answer."""

from typing import Any

import anyio
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext


class FirstAnswer(Middleware):
    """Sees every message; `given` is set when the first one has been dealt with."""

    def __init__(self) -> None:
        self.given = anyio.Event()

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Hand the message on."""
        try:
            return await call_next(context)
        finally:
            self.given.set()
