"""Telling a client that cancels a call from one that merely vanishes: only the first ends the execution."""

from collections.abc import Mapping
from typing import Any, cast

import anyio
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

NOTICE_SECONDS = 1.0


class CancellationWatch(Middleware):
    """Remembers which calls their client has cancelled, while they are under way."""

    def __init__(self) -> None:
        self._calls: dict[str, anyio.Event] = {}

    def begin(self, request_id: str) -> None:
        """Watch a call."""
        self._calls[request_id] = anyio.Event()

    def end(self, request_id: str) -> None:
        """Stop watching it."""
        self._calls.pop(request_id, None)

    async def was_cancelled(self, request_id: str) -> bool:
        """Tell whether the client said so; its notice reaches us a moment after the call is interrupted."""
        noticed = self._calls.get(request_id)
        if noticed is None:
            return False
        with anyio.move_on_after(NOTICE_SECONDS):
            await noticed.wait()
        return noticed.is_set()

    async def on_notification(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Note a cancellation."""
        if context.method == "notifications/cancelled":
            # Notifications reach middleware as they came over the wire.
            message = cast("Mapping[str, Any]", context.message)
            noticed = self._calls.get(str(message.get("requestId")))
            if noticed is not None:
                noticed.set()
        return await call_next(context)
