"""What a function returned, as something that can be kept."""

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from pyexec.domain.errors import ResultNotKeptError
from pyexec.storage.returned import MOST_BYTES

_HINT = "Return numbers, texts, lists, dicts, dataclasses or pydantic models; put what is large into a file."


def encode(value: Any) -> bytes:
    """Return a value as JSON.

    Raises:
        ResultNotKeptError: It is no JSON, or larger than 1 MB.
    """
    try:
        data = json.dumps(to_jsonable_python(value), allow_nan=False, ensure_ascii=True).encode("ascii")
    except (PydanticSerializationError, RecursionError, TypeError, ValueError) as error:
        raise ResultNotKeptError(
            f"The result, of type {type(value).__name__}, cannot be kept as JSON: {str(error)[:300]}.", hint=_HINT
        ) from error
    if len(data) > MOST_BYTES:
        raise ResultNotKeptError(f"The result is {len(data)} bytes of JSON; at most {MOST_BYTES} are kept.", hint=_HINT)
    return data
