"""Progress notifications of one call: only to a client that asked, only ever rising, at most about two a second."""

import anyio
from fastmcp import Context
from fastmcp.server.dependencies import get_context

from pyexec.domain.progress import Progress

STEP_SECONDS = 0.5
STILL_SECONDS = 5.0

_STILL_UNITS = 1000
"""Signs of life count thousandths, so that they stay below the first true step of whatever is counted later."""


class Reporter:
    """Tells one client about one job, or whatever else `what` names.

    `wanted` says whether it asked to be told; if not, nothing here does anything.
    """

    def __init__(self, context: Context | None, what: str) -> None:
        meta = context.request_context.meta if context and context.request_context else None
        # FastMCP looks for other takers too, which costs a millisecond.
        self.wanted = bool(meta and "progressToken" in meta)
        self._context = context
        self._what = what
        self._sent: float = -1.0
        self._sent_at: float = 0.0
        self._message = ""
        self._begun_at: float = anyio.current_time()
        self._base: float = 0.0
        self._last: Progress | None = None

    async def begin(self) -> None:
        """Tell what it is about, before anything else: whoever knows a job's id loses nothing."""
        if self.wanted:
            await self._send(0.0, None, self._what)

    async def still(self, doing: str, *, news: bool = False) -> None:
        """Tell what is going on while nothing is counted: news at once, else a sign of life every few seconds."""
        message = f"{self._what}: {doing}"
        due = anyio.current_time() - self._sent_at >= STILL_SECONDS or (news and message != self._message)
        if self.wanted and due:
            alive = (anyio.current_time() - self._begun_at) / _STILL_UNITS
            total = self._last.total if self._last else None
            await self._send(max(alive, self._sent), None if total is None else self._base + total, message)

    async def tell(self, progress: Progress, *, last: bool = False) -> None:
        """Tell how far the job is, unless that is known or was told a moment ago; `last`: nothing more will come."""
        news = progress != self._last and (last or anyio.current_time() - self._sent_at >= STEP_SECONDS)
        if not self.wanted or not news:
            return
        if self._last is not None and progress.current < self._last.current:
            self._base = self._sent  # Something else is counted from here on; what was done counts as done.
        self._last = progress
        total = None if progress.total is None else self._base + progress.total
        await self._send(self._base + progress.current, total, f"{self._what}: {progress.message or 'running'}")

    async def _send(self, value: float, total: float | None, message: str) -> None:
        if value <= self._sent:
            value = self._sent + 1 / _STILL_UNITS  # The protocol has every notification rise.
        if not value > self._sent:
            return  # So large that a thousandth is nothing.
        self._sent, self._sent_at, self._message = value, anyio.current_time(), message
        if self._context is not None:
            await self._context.report_progress(value, total, message)


def job(job_id: str) -> str:
    """Return how a job is named in notifications."""
    return f"job {job_id}"


def reporter_of_call(job_id: str) -> Reporter:
    """Return the reporter of the call of a tool that is under way; one that does nothing where there is none."""
    try:
        return Reporter(get_context(), job(job_id))
    except RuntimeError:
        return Reporter(None, job(job_id))
