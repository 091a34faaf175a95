"""Ending without cutting anybody off: new work goes elsewhere, open calls have a bounded time."""

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyexec.http.answers import is_mcp, refusal

RETRY_SECONDS = 5
ALWAYS = frozenset({"/healthz", "/readyz", "/metrics"})
"""What answers to the last: those who watch want to see it end."""

_LISTENING = "subscriptions/listen"


class Drain:
    """Knows what is under way, and whether the server has been told to end."""

    def __init__(self) -> None:
        self._begun = anyio.Event()
        self._calls = 0
        self._idle = anyio.Event()

    @property
    def begun(self) -> bool:
        """Whether it has been told to end."""
        return self._begun.is_set()

    @property
    def calls(self) -> int:
        """How many calls are under way; streams that only listen are none."""
        return self._calls

    def begin(self) -> None:
        """Take no new work from now on, and end what only listens."""
        self._begun.set()

    async def wait_begun(self) -> None:
        """Wait until it is told to end."""
        await self._begun.wait()

    async def wait_idle(self, seconds: float) -> bool:
        """Wait until no call is under way, at most so long; tell whether it is so."""
        with anyio.move_on_after(seconds):
            while self._calls:
                self._idle = anyio.Event()
                await self._idle.wait()
        return not self._calls

    def enter(self) -> None:
        """Count a call."""
        self._calls += 1

    def leave(self) -> None:
        """Count it no more."""
        self._calls -= 1
        if not self._calls:
            self._idle.set()


class Draining:
    """Keeps count of calls, and refuses new ones once the server has been told to end."""

    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] != "http" or scope["path"] in ALWAYS:
            await self._app(scope, receive, send)
        elif self._drain.begun:
            answer = refusal(
                scope,
                503,
                "server_ending",
                "This server is ending; try again in a moment. What was started goes on.",
                {"Retry-After": str(RETRY_SECONDS)},
            )
            await answer(scope, receive, send)
        elif _only_listens(scope):
            await self._app(scope, self._until_begun(receive), send)
        else:
            self._drain.enter()
            try:
                await self._app(scope, receive, send)
            finally:
                self._drain.leave()

    def _until_begun(self, receive: Receive) -> Receive:
        """Have the client seem gone once the server is ending: whoever only listens comes back elsewhere."""

        async def wait(scope: anyio.CancelScope) -> None:
            await self._drain.wait_begun()
            scope.cancel()

        async def received() -> Message:
            message: Message = {"type": "http.disconnect"}
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait, tasks.cancel_scope)
                message = await receive()
                tasks.cancel_scope.cancel()
            return message

        return received


def _only_listens(scope: Scope) -> bool:
    return scope["method"] == "GET" or (is_mcp(scope) and Headers(scope=scope).get("mcp-method") == _LISTENING)
