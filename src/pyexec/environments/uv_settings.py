"""The files that uv takes settings from, and what in them we cannot follow."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from pyexec.environments.search import home

# Each of them would have `uv pip` install elsewhere, or for another machine, or less than was asked for.
_REFUSED = ("target", "prefix", "python-platform", "no-emit-package", "dry-run")
_INSTALLS_OTHERWISE = ("no-binary", "no-build", "only-binary", "config-settings", "extra-build")


def settings_files(environ: Mapping[str, str], directory: Path) -> Iterator[Path]:
    """Yield the files that uv may take settings from: for a folder, the user's, the machine's.

    Of a folder and those above uv takes the nearest, or that of the workspace; one more here does no harm.
    """
    user = home(environ)
    yield from _of_folders([directory, *directory.parents])
    config = environ.get("XDG_CONFIG_HOME") or (str(user / ".config") if user is not None else "")
    candidates = [Path(folder) / "uv" / "uv.toml" for folder in (config, "/etc/xdg") if folder]
    candidates += [Path("/etc/uv/uv.toml"), Path(environ.get("UV_CONFIG_FILE") or "/")]
    for candidate in candidates:
        if candidate.is_file():
            yield candidate


def _of_folders(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        if (folder / "uv.toml").is_file():
            yield folder / "uv.toml"
        elif _has_uv_table(folder / "pyproject.toml"):
            yield folder / "pyproject.toml"


def _has_uv_table(file: Path) -> bool:
    try:
        return b"tool.uv" in file.read_bytes()
    except OSError:
        return False


def refused_setting(files: Sequence[Path]) -> str | None:
    """Return a sentence about a setting that would have uv make another environment than was asked for, or None."""
    for file in files:
        pip = _table(_settings(file).get("pip"))
        found = [key for key in _REFUSED if key in pip]
        if found:
            return f"The setting pip.{found[0]} in {file} would have uv make another environment than was asked for."
    return None


def install_settings(files: Sequence[Path]) -> list[str]:
    """Return the settings by which the same versions come out as something else, each as a text."""
    found: list[str] = []
    for file in files:
        settings = _settings(file)
        for table in (settings, _table(settings.get("pip"))):
            found += [f"{key}={value!r}" for key, value in table.items() if key.startswith(_INSTALLS_OTHERWISE)]
    return found


def _settings(file: Path) -> dict[str, object]:
    try:
        table: dict[str, object] = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}  # uv will say what is wrong with it.
    return _table(_table(table.get("tool")).get("uv")) if file.name == "pyproject.toml" else table


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
