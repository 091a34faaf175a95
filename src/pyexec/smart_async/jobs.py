"""One call of a `@smart_async` function: its work, its record, its progress."""

import logging
import math
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from anyio.abc import TaskStatus
from anyio.to_thread import run_sync

from pyexec.domain.errors import PyexecError
from pyexec.domain.progress import Progress, make_progress
from pyexec.smart_async.notes import NOTES
from pyexec.smart_async.values import encode

if TYPE_CHECKING:
    # At run time it would bring in storage, and with it SQLAlchemy, before anybody calls a tool.
    from pyexec.executions.inside import Ended, InsideExecution
    from pyexec.sandbox.keepers import StopMode

_log = logging.getLogger(__name__)

LOOP_ENDED = "The server that did this work in its own process has ended, and the work with it."
_OWN_FOLDER = str(Path(__file__).parent)


class ProgressCallback(Protocol):
    """Tells how far the work is."""

    def __call__(self, current: float, total: float | None = None, message: str = "") -> None:
        """Tell it; numbers that say nothing (negative, infinite, none at all) are passed over."""
        ...


class JobCancelledError(BaseException):
    """Raised by the progress callback in a thread whose job was cancelled: nothing else can end a thread."""


class Job:
    """Work under way. `done` is set when its outcome is written; then `value` or `error` is what came of it."""

    def __init__(
        self, record: "InsideExecution", work: Callable[[], Awaitable[Any]], slot: AbstractAsyncContextManager[object]
    ) -> None:
        self.id = record.id
        self.done = anyio.Event()
        self.began = False
        self.value: Any = None
        self.error: BaseException | None = None
        self.was_cancelled = False
        self._over = False
        self._record = record
        self._work = work
        self._slot = slot
        self._scope = anyio.CancelScope()
        self._reason = ""
        self._told: tuple[float, float | None, str] | None = None
        self._noted = True

    @property
    def progress(self) -> Progress | None:
        """How far it is, if it has said so."""
        return None if self._told is None else make_progress(*self._told)

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Do the work and write down how it ended; raises nothing but a cancellation of the whole event loop."""
        _current.set(self)
        try:
            task_status.started()
            async with anyio.create_task_group() as around:
                around.start_soon(self._record.serve, self._on_stop)
                returned = await self._do()
                with anyio.CancelScope(shield=True):
                    await run_sync(partial(self._write, returned=returned))
                around.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - one job that cannot be written down must not end the others
            self.error = error
            _log.exception("job %s", self.id)
        finally:
            # Where there was a cancellation there is no time for a thread, and not to be waited for.
            self._end("lost", LOOP_ENDED)
            self._record.close()
            self._over = True
            self.done.set()
        await run_sync(self._record.index)

    def is_abandoned(self) -> bool:
        """Tell whether nobody wants to know any more how far it is."""
        return self.was_cancelled or self._over

    def tell(self, current: float, total: float | None, message: str) -> None:
        """Take note of progress, from any thread."""
        if not 0 <= current < math.inf:
            return
        self._told = (current, total, message)
        if self._noted:
            self._noted = False
            NOTES.tell(self)

    def note(self) -> None:
        """Write down how far it is."""
        self._noted = True
        progress = self.progress
        if progress is not None:
            self._record.tell(progress)

    async def _do(self) -> bool:
        """Do the work; tell whether it has returned."""
        try:
            with self._scope:
                async with self._slot:
                    self.began = True
                    self.value = await self._work()
                return True
        except (Exception, SystemExit) as error:  # noqa: BLE001 - how the function fails is data
            self.error = error
        return False

    def _on_stop(self, mode: "StopMode", reason: str) -> None:
        self._reason = self._reason or reason or f"It was {'killed' if mode == 'kill' else 'cancelled'} on request."
        self.was_cancelled = True
        self._scope.cancel()

    def _write(self, *, returned: bool) -> None:
        """Write down what came of it; a result that cannot be kept is a failure like any other."""
        if returned:
            self.was_cancelled = False  # It came too late.
            try:
                self._record.keep(encode(self.value))
            except PyexecError as error:
                self.error = error
            else:
                self._end("returned")
                return
        if self.was_cancelled or self.error is None:
            self._end("cancelled", self._reason)
        else:
            self._end("raised", _summary(self.error), _traceback_of(self.error))

    def _end(self, how: "Ended", reason: str | None = None, stderr: str = "") -> None:
        self.note()
        self._record.end(how, reason, stderr)


_current: ContextVar[Job | None] = ContextVar("pyexec_smart_async_job", default=None)


def create_progress_callback() -> ProgressCallback:
    """Return a function that tells how far the current job is: `(current, total=None, message="")`.

    It is plain (no `await`), quick, and may be called from any thread. Outside of a `@smart_async` call it does
    nothing.
    """
    job = _current.get()

    def tell(current: float, total: float | None = None, message: str = "") -> None:
        if job is None:
            return
        if job.is_abandoned() and not _in_event_loop():
            raise JobCancelledError
        job.tell(current, total, message)

    return tell


def _in_event_loop() -> bool:
    try:
        anyio.get_current_task()
    except RuntimeError:
        return False
    return True


def _summary(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


def _traceback_of(error: BaseException) -> str:
    """Return the traceback without the frames of ours that every one of them begins with."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OWN_FOLDER):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))
