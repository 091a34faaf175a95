"""What a keeper writes beside the log: that the program has begun, and on a full disk too how it ended."""

import json
import os
from typing import Any

STARTED = "started.json"
OUTCOME = "outcome.json"
RESERVE_BYTES = 16 * 1024
_CAN_ALLOCATE = hasattr(os, "posix_fallocate")


class Record:
    """These files of one execution. Room for them is taken at once, but for the first where that is written at once."""

    def __init__(self, folder: "str | os.PathLike[str]", *, has_begun: bool = False) -> None:
        self._folder = os.fspath(folder)
        self._reserved = (OUTCOME,) if has_begun else (STARTED, OUTCOME)
        for name in self._reserved:
            with open(self._part(name), "wb", opener=_private) as file:
                if _CAN_ALLOCATE:
                    os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
                else:
                    file.write(b" " * RESERVE_BYTES)

    def started(self, value: "dict[str, Any]") -> None:
        """Write that it has begun."""
        self._write(STARTED, value)

    def ended(self, outcome: "dict[str, Any]") -> None:
        """Write how it ended."""
        self._write(OUTCOME, outcome)

    def _write(self, name: str, value: "dict[str, Any]") -> None:
        """Write into the room that was taken, and give it its name in one step."""
        # One that was reserved is not made anew: where it is gone, so is the execution.
        with open(self._part(name), "r+b" if name in self._reserved else "wb", opener=_private) as file:
            file.write(json.dumps(value, separators=(",", ":")).encode("ascii"))
            file.truncate()
        os.replace(self._part(name), os.path.join(self._folder, name))

    def _part(self, name: str) -> str:
        return os.path.join(self._folder, f"{name}.part")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
