"""Waiting for a condition, never for a time: a test goes on as soon as what it waits for is true."""

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import anyio

T = TypeVar("T")

PAUSE_SECONDS = 0.02
ENOUGH_SECONDS = (1.0, 4.0, 16.0, 64.0)
"""Ever longer time-outs: the first does on a quiet machine, and on any other one that follows."""
WITHIN_SECONDS = 100.0
"""Bounds a test that has gone wrong; how soon something comes true is a matter of the machine."""


@overload
async def eventually(condition: Callable[[], Awaitable[T]], *, within: float = ..., what: str = ...) -> T: ...
@overload
async def eventually(condition: Callable[[], T], *, within: float = ..., what: str = ...) -> T: ...
async def eventually(
    condition: Callable[[], Any], *, within: float = WITHIN_SECONDS, what: str = "the condition"
) -> Any:
    """Ask again and again until the answer is true; return it. The condition may be a coroutine function."""
    deadline = time.monotonic() + within
    while True:
        asked = condition()
        answer = await asked if inspect.isawaitable(asked) else asked
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {within:g} s; last answer: {answer!r}")
        await anyio.sleep(PAUSE_SECONDS)


async def with_enough_time(
    ask: Callable[[float], Awaitable[T]], far_enough: Callable[[T], object], *, times: float = 1.0
) -> tuple[T, float]:
    """Have a program run into its time-out, once it has come as far as it has to before that.

    How long that takes is a matter of the machine, so it is asked with ever longer time-outs (of `times` as long as
    usual). Returns the last answer and its time-out; what is true of it is for the test to say.
    """
    *shorter, longest = (seconds * times for seconds in ENOUGH_SECONDS)
    for seconds in shorter:
        answer = await ask(seconds)
        if far_enough(answer):
            return answer, seconds
    return await ask(longest), longest
