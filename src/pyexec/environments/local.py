"""Packages that lie on this machine: what tells one state of them from another, and where their modules are."""

import hashlib
import os
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import unquote_to_bytes, urlsplit

from pyexec.environments.installed import normalised

# What a build makes, and what belongs to other tools.
_PASSED_OVER = frozenset(
    {".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", ".pytest_cache", ".mypy_cache"}
    | {".ruff_cache", ".hypothesis"}
)
_PASSED_OVER_AT_TOP = frozenset({"build", "dist"})
_METADATA = ("pyproject.toml", "setup.py", "setup.cfg")
_MOST_FILES = 20_000


def local_path(requirement: str) -> Path | None:
    """Return where a requirement with a `file://` URL points; None for any other."""
    at = requirement.find("file://")
    if at < 0 or requirement[:at].endswith("+"):  # `git+file://…` is a repository.
        return None
    url = requirement[at:].split(" ;")[0].strip()
    try:
        path = urlsplit(url).path.partition("[")[0]
    except ValueError:
        return None
    return Path(os.fsdecode(unquote_to_bytes(path)))


def fingerprint_of(path: Path) -> str:
    """Return a text that changes when a local project or wheel does; reads no contents."""
    if not path.is_dir():
        return _mark(path)
    digest = hashlib.sha256()
    for number, file in enumerate(_files(path)):
        if number >= _MOST_FILES:  # Too many to look at each time: taken for changed.
            return str(time.time_ns())
        digest.update(f"{file.relative_to(path)} {_mark(file)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def metadata_fingerprint(project: Path) -> str:
    """Return a text that changes when what a project needs does; its modules may change freely."""
    return " ".join(_mark(project / name) for name in _METADATA)


def project_name(project: Path) -> str | None:
    """Return the name a project gives itself, where it is written down."""
    name = _table(_pyproject(project).get("project")).get("name")
    return normalised(name) if isinstance(name, str) else None


def source_root(project: Path) -> Path:
    """Return the folder in a project that its modules are imported from: `src` as a rule, else the project's own."""
    tool = _table(_pyproject(project).get("tool"))
    setuptools = _table(tool.get("setuptools"))
    find = _table(_table(setuptools.get("packages")).get("find"))
    where = find.get("where")
    named = [
        _table(setuptools.get("package-dir")).get(""),
        cast("list[object]", where)[0] if isinstance(where, list) and where else None,
        _table(tool.get("maturin")).get("python-source"),
        _table(_table(tool.get("uv")).get("build-backend")).get("module-root"),
        "src",
    ]
    for name in named:
        if isinstance(name, str) and (project / name).is_dir():
            return project / name
    return project


def _files(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _PASSED_OVER
            and not (name in _PASSED_OVER_AT_TOP and root == os.fspath(folder))
            and not name.endswith(".egg-info")
            and not os.path.exists(os.path.join(root, name, "pyvenv.cfg"))
        )
        for name in sorted(names):
            yield Path(root, name)


def _mark(file: Path) -> str:
    try:
        status = file.stat()
    except OSError:
        return "-"
    return f"{status.st_mtime_ns}:{status.st_size}"


def _pyproject(project: Path) -> dict[str, object]:
    try:
        return tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
