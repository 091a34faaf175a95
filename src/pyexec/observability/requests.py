"""Which request, and which execution, what is being done belongs to: every line of the log says so."""

from contextvars import ContextVar, Token

_request: ContextVar[str | None] = ContextVar("request_id", default=None)
_execution: ContextVar[str | None] = ContextVar("execution_id", default=None)


def begin_request(request_id: str) -> Token[str | None]:
    """Say which request is being answered from now on, here and in what is started from here."""
    return _request.set(request_id)


def end_request(token: Token[str | None]) -> None:
    """Say that it has been."""
    _request.reset(token)


def note_execution(execution_id: str) -> None:
    """Say which execution what follows is about."""
    _execution.set(execution_id)


def context_of_logs() -> dict[str, str]:
    """Return what a line of the log says besides its message."""
    found = {"request_id": _request.get(), "execution_id": _execution.get()}
    return {name: value for name, value in found.items() if value is not None}
