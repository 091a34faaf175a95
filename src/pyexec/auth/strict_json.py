"""Reading JSON that others wrote, where two readers must never understand different things."""

import json
from typing import Any, NoReturn, cast


def strict_object(data: bytes) -> dict[str, Any]:
    """Read an object. No name stands twice in it at any depth, and there is no NaN.

    Raises:
        ValueError: It is no such object.
    """
    try:
        found = json.loads(data, object_pairs_hook=_pairs, parse_constant=_constant)
    except RecursionError as error:
        raise ValueError("too deep") from error
    return _object(found)


def _object(found: Any) -> dict[str, Any]:
    if isinstance(found, dict):
        return cast("dict[str, Any]", found)
    raise ValueError("no object")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(name)
