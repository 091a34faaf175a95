"""What an operator may set about the packages that are put together for sandboxes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyexec.domain.sizes import MEGABYTE

Source = Literal["index", "urls", "paths", "other-indexes"]

SOURCES: Mapping[Source, str] = {
    "index": "packages by their names, from the index that uv is set to",
    "urls": "wheels at addresses that a caller names",
    "paths": "wheels on this machine that a caller names",
    "other-indexes": "an index that a caller names",
}
"""Where packages for sandboxes may come from, and what each means; `index` always counts."""

ALL = "all"
NONE = "none"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSettings:
    """What packages callers may have in sandboxes besides those that are there.

    Attributes:
        allowed: Names, normalised; None: all.
        denied: Names, normalised; these win.
        sources: Where they may come from, of `SOURCES`.
        size: The most that the packages of one call or session may take on disk, in bytes.
        files: The most files that they may have.
    """

    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ("index",)
    size: int = 2048 * MEGABYTE
    files: int = 100_000


def parse_allowed(text: str) -> tuple[str, ...] | None:
    """Read names of packages with commas between them; `all` stands for no limit, `none` for none.

    Raises:
        ValueError: One cannot be a name.
    """
    return None if text.strip().lower() == ALL else parse_names(text)


def parse_names(text: str) -> tuple[str, ...]:
    """Read names of packages with commas between them; `none` stands for none.

    Raises:
        ValueError: One cannot be a name.
    """
    names = [name for part in text.split(",") if (name := part.strip())]
    if [name.lower() for name in names] == [NONE]:
        return ()
    if not names or not all(_NAME.fullmatch(name) for name in names):
        raise ValueError(f"no names: {text!r}")
    return tuple(dict.fromkeys(re.sub(r"[-_.]+", "-", name).lower() for name in names))


def parse_sources(text: str) -> tuple[Source, ...]:
    """Read where packages may come from; `index` is there in any case.

    Raises:
        ValueError: One is none of `SOURCES`.
    """
    names = {name for part in text.split(",") if (name := part.strip().lower())}
    if not names or names - SOURCES.keys():
        raise ValueError(f"no sources: {text!r}")
    return tuple(name for name in SOURCES if name in names or name == "index")
