"""From Starlette's requests to our calls, bounded; and plain functions as endpoints, on threads: storage blocks."""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pyexec_idp.domain.calls import Call

Handler = Callable[[Call], Response]

_LARGEST_BODY = 64 * 1024
_MOST_FIELDS = 100
_FORM = "application/x-www-form-urlencoded"


class UnreadableError(Exception):
    """A request that cannot be read; `status` says how."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def on_thread(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that reads the request, and has the rest done on a thread."""

    async def endpoint(request: Request) -> Response:
        try:
            call = await read(request)
        except UnreadableError as error:
            body = {"error": "invalid_request", "error_description": error.message}
            return JSONResponse(body, status_code=error.status)
        return await run_in_threadpool(handler, call)

    return endpoint


async def read(request: Request) -> Call:
    """Read a request.

    Raises:
        UnreadableError: Its body is too large, or no UTF-8 where it is a form.
    """
    body = await _body(request)
    is_form = request.headers.get("content-type", "").partition(";")[0].strip().lower() == _FORM
    return Call(
        method=request.method,
        path=request.url.path,
        query=_pairs(request.scope["query_string"]),
        form=_pairs(body) if is_form else (),
        body=b"" if is_form else body,
        headers=dict(request.headers),
        cookies=request.cookies,
        address=request.client.host if request.client is not None else "",
    )


async def _body(request: Request) -> bytes:
    parts: list[bytes] = []
    left = _LARGEST_BODY
    async for part in request.stream():
        left -= len(part)
        if left < 0:
            raise UnreadableError(413, "The body is too large.")
        parts.append(part)
    return b"".join(parts)


def _pairs(text: bytes) -> tuple[tuple[str, str], ...]:
    try:
        found = parse_qsl(text.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError as error:
        raise UnreadableError(400, "The parameters cannot be read.") from error
    return tuple(found)
