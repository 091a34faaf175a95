"""Which scopes a message needs."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pyexec.auth import scopes
from pyexec.mcp.listing import OLD_PREFIX

_READS = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})


def of_tool(name: str) -> str | None:
    """Return the scope that a tool needs, also by its old name; None when there is no such row."""
    return scopes.TOOLS.get(name) or scopes.TOOLS.get(name.removeprefix(OLD_PREFIX))


def of_message(method: Any, name: Any) -> str | None:
    """Return the scope that a message needs, None when it needs none or is about nothing that we know.

    Args:
        method: What is asked for.
        name: The name of the tool, or the URI of the resource.
    """
    if not isinstance(name, str):
        return None
    if method == "tools/call":
        return of_tool(name)
    return scopes.of_resource(name) if method in _READS else None


def of_body(body: bytes) -> tuple[str, ...]:
    """Return the scopes that a JSON-RPC message, or a batch of them, needs. What cannot be read needs none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    messages: Iterable[Any] = cast("list[Any]", found) if isinstance(found, list) else (found,)
    needed = (_of_one(cast("Mapping[str, Any]", one)) for one in messages if isinstance(one, dict))
    return tuple(dict.fromkeys(scope for scope in needed if scope is not None))


def _of_one(message: Mapping[str, Any]) -> str | None:
    parameters = message.get("params")
    if not isinstance(parameters, dict):
        return None
    values = cast("Mapping[str, Any]", parameters)
    return of_message(message.get("method"), values.get("name", values.get("uri")))
