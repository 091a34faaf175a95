"""Whether the server lives, and whether it takes work."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pyexec.domain.errors import PyexecError
from pyexec.http.drain import RETRY_SECONDS, Drain

Handler = Callable[[Request], Awaitable[Response]]
_FRESH = {"Cache-Control": "no-store"}


async def healthz(_request: Request) -> Response:
    """Answer: that says it all."""
    return JSONResponse({"status": "alive"}, headers=_FRESH)


def readyz(drain: Drain, ready: Callable[[], Awaitable[object]]) -> Handler:
    """Return what answers whether work is taken; `ready` raises what keeps it from being."""

    async def answer(_request: Request) -> Response:
        if drain.begun:
            return _unready("ending")
        try:
            await ready()
        except PyexecError as error:
            # Why is for the operator's log: who asks here has not said who they are.
            return _unready(error.code)
        return JSONResponse({"status": "ready"}, headers=_FRESH)

    return answer


def _unready(status: str) -> Response:
    return JSONResponse({"status": status}, 503, {**_FRESH, "Retry-After": str(RETRY_SECONDS)})
