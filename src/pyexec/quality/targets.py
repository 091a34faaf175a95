"""What a call is about: a source that it brings along, a file, or a folder."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError
from pyexec.executions.requests import existing_directory, existing_path
from pyexec.quality.files import read_source

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What to look at.

    Attributes:
        base: The folder that relative paths start at.
        relative: Whether files are told relative to it, since the caller knows it.
        path: The file or folder; None for a source that came with the call.
        content: The source; None for a folder.
    """

    base: Path
    relative: bool = True
    path: Path | None = None
    content: bytes | None = field(default=None, repr=False)

    @property
    def stdin(self) -> str:
        """The source as a tool is given it: without a mark at its beginning, which some tools drop, some refuse."""
        return os.fsdecode((self.content or b"").removeprefix(BOM))

    @property
    def home(self) -> Path:
        """The folder in which a tool is run."""
        if self.path is None:
            return self.base
        return self.path if self.content is None else self.path.parent

    def shown(self, path: Path) -> str:
        """Return a file's path as the caller may give it again."""
        return str(path.relative_to(self.base)) if self.relative and path.is_relative_to(self.base) else str(path)


def find_target(source: str | None, path: str | None, directory: str | None, *, base: Path, most: int) -> Target:
    """Return what is to be looked at; blocks on the disk. `most` is how large a source may be, in bytes.

    Raises:
        InvalidArgumentError: Both source and path, or neither, are given; or a value is not allowed.
        NotFoundError: The directory or path does not exist.
    """
    if (source is None) == (path is None):
        given = "Neither source nor path was given." if path is None else "Both source and path were given."
        raise InvalidArgumentError(given, hint="Give exactly one of the two.")
    folder = existing_directory(directory, base)
    if source is not None:
        try:
            content = source.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError("source holds a lone surrogate, which is no character.") from None
        if len(content) > most:
            raise InvalidArgumentError(f"source is larger than {most // 2**20} MB, the most that is looked at.")
        return Target(base=folder, content=content)
    relative = directory is not None or not Path(path or "").expanduser().is_absolute()
    found = existing_path("path", path or "", folder)
    found = Path(os.path.normpath(found.absolute()))
    if found.is_dir():
        return Target(base=folder, relative=relative, path=found)
    if not found.is_file():
        raise InvalidArgumentError(f"path {found} is neither a file nor a folder.")
    return Target(base=folder, relative=relative, path=found, content=read_source(found, most))


def nearest(names: tuple[str, ...], start: Path) -> list[Path]:
    """Return the files of these names in a folder and above it, nearest first, up to the folder with `.git`."""
    found: list[Path] = []
    for folder in (start, *start.parents):
        found += [file for name in names if (file := folder / name).is_file()]
        if (folder / ".git").exists():
            break
    return found
