"""The lines of a lock, as uv writes it: pinned packages with their hashes, in the format of pip's requirements."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker

from pyexec.environments.installed import normalised
from pyexec.environments.local import local_path

_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?:==| @ )")
_PATH_STARTS = ("./", "../", "/")
_EDITABLE = "-e "


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedLine:
    """One package.

    Attributes:
        text: The requirement alone.
        full: With its hashes.
    """

    text: str
    full: str

    @property
    def editable(self) -> bool:
        """Whether it is a part of the project that the lock belongs to."""
        return self.text.startswith(_EDITABLE)

    def applies(self, python_version: str) -> bool:
        """Tell whether its marker, if it has one, holds on that version of Python on this machine."""
        marker = self.text.partition(" ;")[2].strip()
        python = {"python_full_version": python_version, "python_version": python_version.rpartition(".")[0]}
        return not marker or Marker(marker).evaluate(python)

    @property
    def distribution(self) -> str | None:
        """The normalised name of what it installs, where the line says it."""
        found = _NAME.match(self.text)
        return normalised(found[1]) if found is not None else None

    @property
    def name(self) -> str | None:
        """The name of the package, where the line says it."""
        name, at, _url = self.text.partition(" @ ")
        return name if at else None

    def path(self, base: Path) -> Path | None:
        """Return where a local package lies; relative ones start at `base`."""
        if self.text.startswith((*_PATH_STARTS, _EDITABLE)) or self.text == ".":
            return (base / self.text.removeprefix(_EDITABLE).split(" ;")[0].strip()).resolve()
        return local_path(self.text)

    def at(self, path: Path) -> str:
        """Return the line with another local path in it."""
        _before, semicolon, marker = self.text.partition(" ;")
        return f"{f'{self.name} @ ' if self.name else ''}{path.as_uri()}{semicolon}{marker}"


def read_lock(text: str) -> list[LockedLine]:
    """Return the lines of a lock, comments and options left out."""
    lines: list[LockedLine] = []
    for entry in text.replace("\\\n", " ").splitlines():
        if not entry or entry.startswith(("#", "--", " ")):
            continue
        requirement = entry.split(" --hash=")[0].strip()
        lines.append(LockedLine(text=requirement, full=" ".join(entry.split())))
    return lines


def without_project(lines: Sequence[LockedLine], base: Path) -> tuple[list[LockedLine], list[Path]]:
    """Part what is installed from the project's own folders, whose modules are imported from where they lie."""
    own = [path for line in lines if line.editable and (path := line.path(base)) is not None]
    return [line for line in lines if not line.editable], own
