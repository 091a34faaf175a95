"""What became of the stream on which a 2026-07-28 call is answered: closing it is how a client cancels."""

from contextvars import ContextVar
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyexec.domain.service import OnDisconnect
from pyexec.http.answers import is_mcp
from pyexec.http.drain import Drain

VERSION_HEADER = "mcp-protocol-version"


@dataclass(slots=True)
class _Stream:
    closed: bool = False


_stream: ContextVar[_Stream | None] = ContextVar("stream", default=None)


class StreamWatch:
    """Notes when a client closes the stream of a call.

    Args:
        app: What answers.
        drain: Says whether it was we who ended.
        handshake_versions: The protocols in which a closed stream means nothing.
        on_disconnect: What it means in the others.
    """

    def __init__(
        self, app: ASGIApp, drain: Drain, handshake_versions: frozenset[str], on_disconnect: OnDisconnect
    ) -> None:
        self._app = app
        self._drain = drain
        self._handshake_versions = handshake_versions
        self._cancels = on_disconnect == "cancel"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] != "http" or not is_mcp(scope):
            await self._app(scope, receive, send)
            return
        version = Headers(scope=scope).get(VERSION_HEADER)
        stream = None if version is None or version in self._handshake_versions else _Stream()
        # Reset in any case: a session with a handshake goes on in the context of the request that opened it.
        token = _stream.set(stream)
        try:
            await self._app(scope, receive if stream is None else self._watched(stream, receive), send)
        finally:
            _stream.reset(token)

    def _watched(self, stream: _Stream, receive: Receive) -> Receive:
        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect" and self._cancels and not self._drain.begun:
                stream.closed = True
            return message

        return received


def closed_by_client() -> bool | None:
    """Tell whether the client of the call that is under way has ended it by closing its stream.

    None where a closed stream says nothing, and a client that cancels sends a message.
    """
    stream = _stream.get()
    return None if stream is None else stream.closed
