"""Running a plain function so that the event loop goes on, and so that it never keeps a process from ending."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio


async def run_in_thread(function: Callable[[], Any]) -> Any:
    """Run a function in a thread of its own, with the caller's context variables; return or raise what it does.

    A cancelled call leaves the thread to itself. The threads of anyio would not do: they are waited for at the end of
    the process.
    """
    loop = asyncio.get_running_loop()
    done = anyio.Event()
    values: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            values.append(function())
        except BaseException as error:  # noqa: BLE001 - whoever waits is told, and nobody else
            errors.append(error)
        finally:
            with suppress(RuntimeError):  # The event loop is closed: nobody waits any more.
                loop.call_soon_threadsafe(done.set)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="smart_async", daemon=True).start()
    await done.wait()
    if errors:
        raise errors[0]
    return values[0]
