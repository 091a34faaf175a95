"""What lies in a workspace."""

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from pyexec.domain.errors import InvalidArgumentError
from pyexec.sessions.paths import Place
from pyexec.sessions.walking import Entry, Walk

Kind = Literal["file", "folder", "link", "other"]

MOST_LOOKED_AT = 50_000
LOOK_SECONDS = 2.0
MOST_LISTED = 500
LONGEST_PATTERN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Something in a workspace; `modified` is seconds since the epoch, and may be anything."""

    path: str
    kind: Kind
    size: int
    modified: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What was found, by path, the first 500 of it; `total` counts all, `complete` says whether all was looked at."""

    entities: tuple[Entity, ...]
    total: int
    complete: bool


def list_folder(root: int, place: Place, *, pattern: str | None, recursive: bool) -> Listing:
    """List a folder of a workspace.

    A pattern without a slash is held against names, one with a slash against paths from the folder on, where `**`
    stands for any folders.

    Raises:
        InvalidArgumentError: The pattern is too long.
        OSError: The folder cannot be opened.
    """
    if pattern is not None and len(pattern) > LONGEST_PATTERN:
        raise InvalidArgumentError(f"pattern has {len(pattern)} characters; at most {LONGEST_PATTERN} are allowed.")
    walk = Walk(root, place.path, most=MOST_LOOKED_AT, seconds=LOOK_SECONDS, deep=recursive)
    found: list[Entity] = []
    for prefix, entries in walk:
        for entry in entries:
            path = prefix + entry.name
            if (pattern is None or matches(path, pattern)) and (one := _entity(place, path, entry)) is not None:
                found.append(one)
    found.sort(key=lambda one: one.path)
    return Listing(entities=tuple(found[:MOST_LISTED]), total=len(found), complete=walk.complete)


def matches(path: str, pattern: str) -> bool:
    """Tell whether a path fits a pattern, in a time that no pattern makes long."""
    if "/" not in pattern:
        return fnmatchcase(path.rpartition("/")[2], pattern)
    return _match_parts(path.split("/"), [part for part in pattern.split("/") if part])


def _match_parts(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """Go through the parts once, with all the positions in the pattern at which one can be by then."""
    at = _with_gaps({0}, patterns)
    for part in parts:
        following = {
            position if patterns[position] == "**" else position + 1
            for position in at
            if position < len(patterns) and (patterns[position] == "**" or fnmatchcase(part, patterns[position]))
        }
        at = _with_gaps(following, patterns)
    return len(patterns) in at


def _with_gaps(positions: set[int], patterns: Sequence[str]) -> set[int]:
    """Add the positions behind each `**`, which may stand for no folder at all."""
    found = set(positions)
    for position in sorted(positions):
        following = position
        while following < len(patterns) and patterns[following] == "**":
            following += 1
            found.add(following)
    return found


def _entity(place: Place, path: str, entry: Entry) -> Entity | None:
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:
        return None  # It has gone meanwhile.
    kind = _kind(state.st_mode)
    size = state.st_size if kind == "file" else 0
    return Entity(path=place.below(path).path, kind=kind, size=size, modified=state.st_mtime_ns / 1e9)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"
