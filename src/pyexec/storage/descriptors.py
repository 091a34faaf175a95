"""What an execution's own folder says about it, so that a lost database can be made anew."""

import json
import os
from pathlib import Path

from pyexec.domain.executions import Execution
from pyexec.storage.executions import from_values, to_values
from pyexec.storage.packed import read

DESCRIPTOR = "execution.json"


def write_descriptor(folder: Path, execution: Execution) -> None:
    """Put the record, as it was submitted, into the execution's folder."""
    with open(folder / DESCRIPTOR, "w", encoding="utf-8", opener=_private) as file:
        file.write(descriptor(execution))


def descriptor(execution: Execution) -> str:
    """Return what is put there."""
    return json.dumps(to_values(execution))


def read_descriptor(folder: Path) -> Execution | None:
    """Return the record that lies in a folder, packed or not, or None when there is none to be read."""
    try:
        packed = read(folder, DESCRIPTOR)
        return from_values(json.loads((folder / DESCRIPTOR).read_bytes() if packed is None else packed))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
