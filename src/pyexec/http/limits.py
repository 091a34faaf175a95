"""How many requests one user, or one place from which nobody says who they are, may make.

Each has a bucket of tokens, which fills again.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from pyexec.http.answers import refusal
from pyexec.http.drain import ALWAYS

BURSTS_PER_MINUTE = 6
MOST_BUCKETS = 10_000


class Buckets:
    """Says who has to wait. Memory is bounded: who has not been seen for the longest time starts anew.

    Args:
        per_minute: How many requests each may make; a sixth of them at once.
        clock: Seconds that only grow.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = max(1.0, per_minute / BURSTS_PER_MINUTE)
        self._per_second = per_minute / 60
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> float:
        """Take one token; return after how many seconds there will be one, 0 where there was."""
        now = self._clock()
        left, seen = self._buckets.pop(key, (self._size, now))
        left = min(self._size, left + (now - seen) * self._per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._per_second
        self._buckets[key] = (left - 1 if not wait else left, now)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return wait


class RateLimit:
    """Refuses requests of users who make too many. Stands behind what finds out who asks.

    Args:
        app: What answers.
        counted_as: Tells whose requests one counts among.
        buckets: Says who has to wait.
    """

    def __init__(self, app: ASGIApp, counted_as: Callable[[HTTPConnection], str], buckets: Buckets) -> None:
        self._app = app
        self._counted_as = counted_as
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] == "http" and scope["path"] not in ALWAYS:
            wait = self._buckets.take(self._counted_as(HTTPConnection(scope)))
            if wait:
                answer = refusal(
                    scope,
                    429,
                    "too_many_requests",
                    f"Too many requests; try again in {math.ceil(wait)} s.",
                    {"Retry-After": str(math.ceil(wait))},
                )
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)
