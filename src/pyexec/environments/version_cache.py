"""What versions interpreters have, remembered on disk: asking one means starting it."""

import contextlib
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import cast

from pyexec.environments.fingerprints import Fingerprint
from pyexec.environments.python_versions import Version

_FORMAT = 1


class VersionCache:
    """Versions by path and fingerprint.

    A file that is missing, damaged or unwritable costs time and is never an error. Its methods touch the
    disk: call them from worker threads, as many as you like.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[str, tuple[Fingerprint, Version]] | None = None
        self._lock = threading.Lock()

    def get(self, path: Path, mark: Fingerprint) -> Version | None:
        """Return the version that this very program had when it was asked."""
        with self._lock:
            if self._known is None:
                self._known = self._read()
            entry = self._known.get(str(path))
        return entry[1] if entry is not None and entry[0] == mark else None

    def put(self, path: Path, mark: Fingerprint, version: Version) -> None:
        """Remember a version, for other servers too."""
        with self._lock:
            # What other servers found meanwhile is kept; when two write at once, one answer is asked for
            # again.
            self._known = self._read() | (self._known or {}) | {str(path): (mark, version)}
            self._write(self._known)

    def _read(self) -> dict[str, tuple[Fingerprint, Version]]:
        if self._file is None:
            return {}
        try:
            content: object = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        document = _items(content)
        if document.get("format") != _FORMAT:
            return {}
        entries = {path: _entry(value) for path, value in _items(document.get("interpreters")).items()}
        return {path: entry for path, entry in entries.items() if entry is not None}

    def _write(self, known: dict[str, tuple[Fingerprint, Version]]) -> None:
        if self._file is None:
            return
        document = {
            "format": _FORMAT,
            "interpreters": {
                path: {"mtime_ns": mark.mtime_ns, "size": mark.size, "version": list(version)}
                for path, (mark, version) in known.items()
            },
        }
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._file.parent, prefix=f".{self._file.name}.")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(document, file, indent=1)
                Path(name).replace(self._file)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise


def _items(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _entry(value: object) -> tuple[Fingerprint, Version] | None:
    """Read one entry; anything that does not look like ours is none."""
    match value:
        case {"mtime_ns": int(mtime_ns), "size": int(size), "version": [int(major), int(minor), int(patch)]}:
            return Fingerprint(mtime_ns=mtime_ns, size=size), (major, minor, patch)
        case _:
            return None
