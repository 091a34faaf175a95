"""Arguments of the wrong type or name, and faults of ours, as the same kind of answer as every other refusal."""

from typing import Any

from fastmcp.exceptions import ToolError
from fastmcp.exceptions import ValidationError as InvalidArguments
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from pydantic import ValidationError

from pyexec.domain.errors import InvalidArgumentError, PyexecError
from pyexec.mcp.rendering import render_error

_SHOWN = 80
_SECRET = frozenset({"compare", "env_vars", "stdin"})


class ErrorAnswers(Middleware):
    """Turns the schema's complaints into sentences that name the argument, the value and what is allowed."""

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Answer a call whose arguments do not fit."""
        try:
            return await call_next(context)
        except InvalidArguments as error:
            cause = error.__cause__
            details = cause.errors(include_url=False) if isinstance(cause, ValidationError) else []
            message = " ".join(_sentence(detail) for detail in details) or str(error)
            return _refusal(InvalidArgumentError.code, message)
        except ToolError:
            # A fault of ours, which FastMCP has logged with its traceback and hides from the client.
            return _refusal(PyexecError.code, "pyexec itself failed; its log, in the state folder, says where.")


def _refusal(code: str, message: str) -> ToolResult:
    structured = {"error": message, "error_code": code}
    return ToolResult(content=render_error(code, message, None), structured_content=structured, is_error=True)


def _sentence(detail: Any) -> str:
    name = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "unexpected_keyword_argument":
        return f"There is no argument {name}."
    if detail["type"].startswith("missing"):
        return f"The argument {name} is missing."
    said = str(detail["msg"]).removeprefix("Value error, ")
    given = "" if detail["loc"][:1] and detail["loc"][0] in _SECRET else f" (given: {_short(detail['input'])})"
    return f"{name}: {said}{given}."


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
