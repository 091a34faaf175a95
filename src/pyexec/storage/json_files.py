"""Small files that are replaced in one step: whoever reads sees the old one or the new one, never half of it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file; empty when it is missing or damaged."""
    try:
        values: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", values) if isinstance(values, dict) else {}


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Put an object into a file."""
    write_text(path, json.dumps(values))


def write_text(path: Path, text: str) -> None:
    """Put text into a file."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, "utf-8")
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
