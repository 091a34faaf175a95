"""The decorator."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any

import anyio
from anyio.to_thread import run_sync

from pyexec.app.principal import local_principal
from pyexec.domain.errors import InvalidArgumentError
from pyexec.mcp import arguments as arg
from pyexec.mcp.progress import STEP_SECONDS, reporter_of_call
from pyexec.settings import smart_async_seconds
from pyexec.smart_async.home import HOME
from pyexec.smart_async.jobs import LOOP_ENDED, Job
from pyexec.smart_async.nursery import nursery_of_this_loop
from pyexec.smart_async.threads import run_in_thread

LONGEST_SECONDS = 86400.0
GOES_ON = "It goes on in the background; py_job_status(job_id) tells how far it is and, at the end, its result."
CANCELLED = "It was cancelled."

_ADDED: Mapping[str, tuple[Any, Any]] = {"async_mode": (arg.AsyncMode, False), "job_label": (arg.JobLabel, None)}


def smart_async(
    timeout_env: str | None = None, default_timeout: float = 30.0
) -> Callable[[Callable[..., Any]], Callable[..., Awaitable[Any]]]:
    """Have a tool try to finish within a budget, and else go on as a job whose id comes back.

    The function may be `async` or plain; a plain one runs in a thread. Its signature gains `async_mode` (hand back the
    job at once) and `job_label`. Within the budget the caller gets what the function returns or raises; after it
    `{"job_id": ..., "status": "running", ...}`. The work goes on when the call is cancelled or the client leaves, and
    ends with the server's process.

    Args:
        timeout_env: The environment variable with the budget in seconds, read at each call. Where it is not set,
            `SMART_ASYNC_TIMEOUT_SECONDS` counts.
        default_timeout: The budget in seconds when neither is set.

    Raises:
        InvalidArgumentError: The default is no number from 0 to 86400, or the function has such arguments already.
    """
    if not 0 <= default_timeout <= LONGEST_SECONDS:
        raise InvalidArgumentError(f"default_timeout is {default_timeout}; it must be between 0 and 86400.")

    def decorate(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        signature = _extended(function)

        @functools.wraps(function)
        async def call(*args: Any, async_mode: bool = False, job_label: str | None = None, **kwargs: Any) -> Any:
            deadline = anyio.current_time() + smart_async_seconds(timeout_env, default_timeout)
            job = await _start(function, functools.partial(function, *args, **kwargs), job_label)
            if async_mode:
                return {"job_id": job.id, "status": "pending"}
            await _wait(job, deadline)
            return _answer(job)

        call.__dict__["__signature__"] = signature
        call.__annotations__ = {
            **{name: hint for name, hint in _annotations(function).items() if name != "return"},
            **{name: hint for name, (hint, _default) in _ADDED.items()},
        }
        return call

    return decorate


async def _start(function: Callable[..., Any], bound: Callable[[], Any], label: str | None) -> Job:
    nursery = await nursery_of_this_loop()
    services = await HOME.get()
    source = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
    is_async = inspect.iscoroutinefunction(function)
    begin = functools.partial(services.inside.begin, local_principal(), source=source, label=label, started=is_async)
    record = await run_sync(begin)  # This is waited for even if the call is cancelled meanwhile.

    def in_thread() -> Any:
        record.started()
        return bound()

    if is_async:
        job = Job(record, bound, nullcontext())
    else:
        job = Job(record, functools.partial(run_in_thread, in_thread), nursery.threads)
    try:
        await nursery.start(job.run)
    except RuntimeError:
        record.end("lost", LOOP_ENDED)
        record.close()
        raise
    return job


async def _wait(job: Job, deadline: float) -> None:
    reporter = reporter_of_call(job.id)
    await reporter.begin()
    while not job.done.is_set() and (left := deadline - anyio.current_time()) > 0:
        with anyio.move_on_after(min(left, STEP_SECONDS) if reporter.wanted else left):
            await job.done.wait()
        if job.progress is not None:
            await reporter.tell(job.progress, last=job.done.is_set())
        elif not job.done.is_set():
            await reporter.still("running")


def _answer(job: Job) -> Any:
    if not job.done.is_set():
        return {"job_id": job.id, "status": "running" if job.began else "pending", "message": GOES_ON}
    if job.was_cancelled:
        return {"job_id": job.id, "status": "cancelled", "message": CANCELLED}
    if job.error is not None:
        raise job.error
    return job.value


def _extended(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature that a server sees: with our arguments, and open about what comes back."""
    signature = inspect.signature(function)
    taken = [name for name in _ADDED if name in signature.parameters]
    if taken:
        raise InvalidArgumentError(
            f"{getattr(function, '__qualname__', function)} has an argument {taken[0]!r} of its own; "
            "smart_async adds one of that name."
        )
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, (hint, default) in _ADDED.items()
    ]
    given = list(signature.parameters.values())
    rest = [given.pop()] if given and given[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    return signature.replace(parameters=[*given, *added, *rest], return_annotation=inspect.Signature.empty)


def _annotations(function: Callable[..., Any]) -> Mapping[str, Any]:
    return getattr(function, "__annotations__", {})
