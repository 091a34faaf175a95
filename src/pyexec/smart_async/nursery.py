"""Who owns the work that goes on after its call: one task group for each event loop."""

import asyncio
import contextvars
import weakref
from typing import Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from pyexec.domain.errors import UnsupportedPlatformError

THREADS = 64

_nurseries: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Nursery]" = weakref.WeakKeyDictionary()


class Work(Protocol):
    """Work to be started; it says when it has begun."""

    async def __call__(self, *, task_status: TaskStatus[None]) -> None:
        """Do it."""
        ...


class Nursery:
    """A task group that no call can cancel; it ends with its event loop, and ends its work then."""

    def __init__(self) -> None:
        self.threads = anyio.CapacityLimiter(THREADS)
        self._ready = anyio.Event()
        self._tasks: TaskGroup | None = None
        self._root: asyncio.Task[None] | None = None

    async def start(self, work: "Work") -> None:
        """Start work that goes on by itself, with the context variables of whoever starts it; it has begun then."""
        if self._tasks is None:
            raise RuntimeError("This event loop is ending.")
        with anyio.CancelScope(shield=True):
            await self._tasks.start(work)

    async def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin, once. The task is held here, and the event loop cancels it when it ends."""
        if self._root is None:
            self._root = loop.create_task(self._host(), name="smart_async", context=contextvars.Context())
        await self._ready.wait()

    async def _host(self) -> None:
        try:
            async with anyio.create_task_group() as self._tasks:
                self._ready.set()
                await anyio.sleep_forever()
        finally:
            self._tasks = None
            _nurseries.pop(asyncio.get_running_loop(), None)


async def nursery_of_this_loop() -> Nursery:
    """Return the nursery of the running event loop.

    Raises:
        UnsupportedPlatformError: It is not one of asyncio.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise UnsupportedPlatformError("smart_async works in an event loop of asyncio only.") from None
    nursery = _nurseries.setdefault(loop, Nursery())
    await nursery.open(loop)
    return nursery
