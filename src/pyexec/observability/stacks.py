"""What every thread and every task of this process is doing, on SIGUSR1: written down, and the process goes on."""

import asyncio
import faulthandler
import inspect
import logging
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_log = logging.getLogger(__name__)

MOST_FRAMES = 60
MOST_TASKS = 500


def dump_on_signal() -> None:
    """From now on SIGUSR1 writes the stacks to stderr and to the log; values of variables are no part of them.

    Where Python itself is stuck, the interpreter writes at least those of the threads to stderr.
    """
    signal.signal(signal.SIGUSR1, _on_signal)
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True, chain=True)


def stacks() -> str:
    """Return the stacks of all threads, and of all tasks of the event loop that runs in this thread."""
    return "\n".join([*_of_threads(), *_of_tasks()])


def _on_signal(_number: int, _frame: FrameType | None) -> None:
    text = stacks()
    # A thread of its own: whoever was interrupted may hold the locks of the log.
    threading.Thread(target=_write, args=(text,), name="stack dump", daemon=True).start()


def _write(text: str) -> None:
    _log.error("stacks, asked for with SIGUSR1 (no fault):\n%s", text)


def _of_threads() -> Iterator[str]:
    names = ", ".join(f"{thread.ident or 0:#018x} is {thread.name}" for thread in threading.enumerate())
    yield f"threads: {names}"
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        yield from file.read().decode("utf-8", "replace").splitlines()


def _of_tasks() -> Iterator[str]:
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:  # No loop runs in this thread.
        return
    for task in sorted(tasks, key=lambda task: task.get_name())[:MOST_TASKS]:
        coroutine = task.get_coro()
        yield f"task {task.get_name()} ({getattr(coroutine, '__qualname__', 'unknown')}):"
        for frame in _awaited(coroutine):
            yield f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_qualname}'


def _awaited(awaited: Any) -> Iterator[FrameType]:
    """Yield the frames of a coroutine and of what it waits for, the outermost first."""
    for _step in range(MOST_FRAMES):
        if inspect.iscoroutine(awaited):
            frame, awaited = awaited.cr_frame, awaited.cr_await
        elif inspect.isgenerator(awaited):
            frame, awaited = awaited.gi_frame, awaited.gi_yieldfrom
        elif inspect.isasyncgen(awaited):
            frame, awaited = awaited.ag_frame, awaited.ag_await
        else:
            return
        if frame is not None:
            yield frame
