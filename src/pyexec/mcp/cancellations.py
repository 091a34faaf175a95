"""Telling a client that cancels a call from one that merely vanishes: only the first ends the execution."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import anyio
from fastmcp import Context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

NOTICE_SECONDS = 1.0


class Call(NamedTuple):
    """A call under way: clients count their requests each for itself."""

    session: str
    request_id: str


def _session_of(context: Context) -> str:
    """Return whose numbers a call's is one of; over stdin and stdout there is one client only."""
    return context.session_id if context.transport == "streamable-http" else ""


def _says_nothing() -> bool | None:
    return None


class CancellationWatch(Middleware):
    """Remembers which calls their client has cancelled, while they are under way.

    Args:
        closed_by_client: Tells whether the client of the call under way has cancelled it by closing its stream; None
            where that is no way to cancel, and a message is.
    """

    def __init__(self, closed_by_client: Callable[[], bool | None] = _says_nothing) -> None:
        self._calls: dict[Call, anyio.Event] = {}
        self._closed_by_client = closed_by_client

    def begin(self, context: Context) -> Call:
        """Watch a call."""
        call = Call(_session_of(context), context.request_id)
        self._calls[call] = anyio.Event()
        return call

    def end(self, call: Call) -> None:
        """Stop watching it."""
        self._calls.pop(call, None)

    async def was_cancelled(self, call: Call) -> bool:
        """Tell whether the client said so; its notice reaches us a moment after the call is interrupted."""
        closed = self._closed_by_client()
        if closed is not None:
            return closed
        noticed = self._calls.get(call)
        if noticed is None:
            return False
        with anyio.move_on_after(NOTICE_SECONDS):
            await noticed.wait()
        return noticed.is_set()

    async def on_notification(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Note a cancellation."""
        if context.method == "notifications/cancelled" and context.fastmcp_context is not None:
            # Notifications reach middleware as they came over the wire.
            message = cast("Mapping[str, Any]", context.message)
            call = Call(_session_of(context.fastmcp_context), str(message.get("requestId")))
            noticed = self._calls.get(call)
            if noticed is not None:
                noticed.set()
        return await call_next(context)
