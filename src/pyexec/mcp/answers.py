"""One way for every tool to answer: structured content always, text as markdown or JSON, our errors by code."""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from fastmcp.tools import ToolResult
from mcp_types import ContentBlock, TextContent

from pyexec.domain.errors import PyexecError
from pyexec.mcp.rendering import render_error
from pyexec.mcp.results import Result

R = TypeVar("R", bound=Result)

_log = logging.getLogger(__name__)


async def answer(
    work: Callable[[], Awaitable[R]],
    render: Callable[[R], str],
    empty: type[R],
    *,
    markdown: bool,
    failed: Callable[[R], bool] = lambda _result: False,
    more: Callable[[R], list[ContentBlock]] = lambda _result: [],
) -> ToolResult:
    """Do a tool's work and wrap what comes of it.

    `failed` says whether the result is an error for the caller; `more` is what the answer carries besides its text.
    """
    try:
        result = await work()
    except PyexecError as error:
        _log.info("refused: %s: %s", error.code, error.message)
        refused = empty(error=error.sentence(), error_code=error.code).model_dump(exclude_unset=True)
        text = render_error(error.code, error.message, error.hint)
        return _wrap(refused, text if markdown else None, is_error=True)
    text = render(result) if markdown else None
    return _wrap(result.to_structured(), text, is_error=failed(result), more=more(result))


def has_error(result: Result) -> bool:
    """Tell whether what was run went wrong, for tools whose answer is then an error."""
    return result.error is not None


def _wrap(
    structured: dict[str, Any], text: str | None, *, is_error: bool, more: Sequence[ContentBlock] = ()
) -> ToolResult:
    told = TextContent(type="text", text=json.dumps(structured, ensure_ascii=False) if text is None else text)
    # These are plain values already; to be made sure of that they would be written as JSON and read again.
    return ToolResult.model_construct(
        content=[told, *more], structured_content=structured, meta=None, is_error=is_error
    )
