"""Top-level `await`: one event loop for the life of the session."""

import asyncio
from collections.abc import Coroutine
from typing import Any

CANCEL_SECONDS = 2.0


class AsyncRunner:
    """Runs the coroutines that cells turn into."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """See that the program finds an event loop that is open, whatever it did to the last."""
        asyncio.set_event_loop(self._current())

    def __call__(self, coroutine: "Coroutine[Any, Any, Any]") -> Any:
        """Run a coroutine to its end; an interrupt cancels it, so that it does not go on in the next cell."""
        loop = self._current()
        asyncio.set_event_loop(loop)
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                loop.run_until_complete(asyncio.wait([task], timeout=CANCEL_SECONDS))
            raise

    def _current(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        return self._loop
