"""Files that a tool of ours leaves for an execution: a notebook with its outputs, a flame graph, a plot.

The program could write there too, so nothing about them is trusted: plain names and regular files count, nothing else.
"""

import mimetypes
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyexec.storage.plain_files import read_plain

FOLDER = "artifacts"
VARIABLE = "PYEXEC_ARTIFACTS"
MOST_LISTED = 200
LONGEST_NAME = 200

_TYPES = {".ipynb": "application/x-ipynb+json", ".jsonl": "application/jsonl"}
_ANY_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that belongs to an execution; its size in bytes."""

    name: str
    size: int
    media_type: str


def make_artifacts_folder(execution: Path) -> Path:
    """Make the folder for them in that of an execution."""
    folder = execution / FOLDER
    folder.mkdir(mode=0o700)
    return folder


def list_artifacts(execution: Path) -> tuple[Artifact, ...]:
    """Return what there is, by name; at most 200."""
    found: list[Artifact] = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(execution / FOLDER) as entries:
        for entry in entries:
            if is_artifact_name(entry.name) and entry.is_file(follow_symlinks=False):
                size = entry.stat(follow_symlinks=False).st_size
                found.append(Artifact(name=entry.name, size=size, media_type=media_type_of(entry.name)))
    return tuple(sorted(found, key=lambda one: one.name)[:MOST_LISTED])


def read_artifact(execution: Path, name: str, most: int) -> bytes | None:
    """Return the content of one; None where there is none of that name, or it has more than `most` bytes."""
    if not is_artifact_name(name):
        return None
    return read_plain(execution / FOLDER, name, most)


def is_artifact_name(name: str) -> bool:
    """Tell whether a name is one plain part of a path that people can read."""
    return 0 < len(name) <= LONGEST_NAME and not name.startswith(".") and "/" not in name and name.isprintable()


def media_type_of(name: str) -> str:
    """Guess from the name what is in it."""
    return _TYPES.get(Path(name).suffix.lower()) or mimetypes.guess_type(name)[0] or _ANY_TYPE
