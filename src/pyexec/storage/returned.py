"""What work inside a server returned, as JSON in its execution's folder."""

import json
import os
from pathlib import Path
from typing import Any

MOST_BYTES = 1024 * 1024

_NAME = "returned.json"


def write_returned(folder: Path, data: bytes) -> None:
    """Keep a value that is JSON already."""
    with open(folder / _NAME, "wb", opener=_private) as file:
        file.write(data)


def read_returned(folder: Path) -> Any:
    """Return the value; None where there is none, or none that can be read."""
    try:
        fd = os.open(folder / _NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        return json.loads(data) if len(data) <= MOST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
