"""Telling one program at a path from another that takes its place later."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What changes when a file is replaced."""

    mtime_ns: int
    size: int


def fingerprint(path: Path) -> Fingerprint | None:
    """Look at the program behind a path; None when there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Fingerprint(mtime_ns=status.st_mtime_ns, size=status.st_size)
