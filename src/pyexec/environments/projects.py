"""The project a script lies in: what it says it needs, its lock, its `.venv`. Only read, never built or synced."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import cast

from pyexec.environments.search import home

LOCK = "uv.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project's needs.

    Attributes:
        file: Its `pyproject.toml`.
        dependencies: Its requirements, as written.
        requires_python: The versions of Python it runs on, or None.
        uv_settings: Its `[tool.uv]` table.
        lock: Its uv.lock, or that of the workspace it is a member of; None when there is none.
        is_package: Whether its modules are meant to be imported.
        notes: What could not be read, a sentence each, for the reader of the result.
    """

    file: Path
    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None
    uv_settings: Mapping[str, object] = field(default_factory=dict[str, object])
    lock: Path | None = None
    is_package: bool = False
    notes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.file.parent


def read_project(directory: Path, environ: Mapping[str, str]) -> Project | None:
    """Read the nearest `pyproject.toml` with a `[project]` table; None when there is none.

    The search starts at the folder, goes up, and ends at a folder with `.git` or at the home folder, both
    included. Where neither is above, only the folder itself counts: a file that somebody left in `/tmp` or
    `/` is nobody's project. A damaged file is never an error, since the script may well not need it; the
    notes tell.
    """
    folders = list(_folders(directory.resolve(), home(environ)))
    for folder in folders:
        file = folder / "pyproject.toml"
        try:
            table: dict[str, object] = tomllib.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:  # A fault in TOML or UTF-8 is a ValueError.
            note = f"{file} cannot be read ({error}), so the project's dependencies were not installed."
            return Project(file=file, notes=(note,))
        project = table.get("project")
        if isinstance(project, dict):
            above = folders[folders.index(folder) :]
            lock = next((lock for one in above if (lock := one / LOCK).is_file()), None)
            return _project(file, cast("dict[str, object]", project), table, _lock_of(folder, lock))
    return None


def find_virtual_environment(directory: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the interpreter in the nearest `.venv`, searched for as projects are."""
    for folder in _folders(directory.resolve(), home(environ)):
        python = folder / ".venv" / "bin" / "python"
        if python.exists():
            return python
    return None


def packages_of(python: Path, version: tuple[int, ...]) -> Path:
    """Return where the packages of the virtual environment lie that has this interpreter."""
    return python.parents[1] / "lib" / f"python{version[0]}.{version[1]}" / "site-packages"


def _folders(directory: Path, user: Path | None) -> Iterator[Path]:
    above: list[Path] = []
    for folder in (directory, *directory.parents):
        above.append(folder)
        if (folder / ".git").exists() or folder == user:
            return iter(above)
    return iter([directory])


def _lock_of(project: Path, lock: Path | None) -> Path | None:
    """Return the nearest lock above a project if it is the project's own, or that of its workspace."""
    if lock is None or lock.parent == project:
        return lock
    try:
        table = tomllib.loads((lock.parent / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    workspace = _table(_table(_table(table.get("tool")).get("uv")).get("workspace"))

    def named_in(key: str) -> bool:
        # A pattern with the root before it has to match the whole path.
        return any(project.match(f"{escape(str(lock.parent))}/{one}") for one in _strings(workspace.get(key)))

    return lock if named_in("members") and not named_in("exclude") else None


def _project(file: Path, project: Mapping[str, object], table: Mapping[str, object], lock: Path | None) -> Project:
    notes: list[str] = []
    dynamic = project.get("dynamic", [])
    uv_settings = _table(_table(table.get("tool")).get("uv"))
    if lock is None and isinstance(dynamic, list) and "dependencies" in dynamic:
        # Only its build backend knows them, and asking that would write into the user's folder.
        notes.append(f"The dependencies of {file} are dynamic and were not installed.")
    requires_python = project.get("requires-python")
    return Project(
        file=file,
        dependencies=_strings(project.get("dependencies")),
        requires_python=requires_python if isinstance(requires_python, str) else None,
        uv_settings=uv_settings,
        lock=lock,
        is_package="build-system" in table or uv_settings.get("package") is True,
        notes=tuple(notes),
    )


def _strings(value: object) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, str))


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
