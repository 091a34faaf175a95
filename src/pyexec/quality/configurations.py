"""Which settings of a project the tools are pointed at; those that find theirs by themselves are not here."""

import tomllib
from pathlib import Path
from typing import cast

from pyexec.quality.targets import nearest

_PYPROJECT = "pyproject.toml"


def bandit_settings(folder: Path) -> Path | None:
    """Return the file with the settings for bandit that hold in a folder: of its own, or a `[tool.bandit]` table."""
    for file in nearest(("bandit.yaml", "bandit.yml", _PYPROJECT), folder):
        if file.name != _PYPROJECT or "bandit" in _tools(file):
            return file
    return None


def type_check_root(folder: Path) -> Path | None:
    """Return the folder whose settings for the type checker hold in a folder; None where there are none."""
    for file in nearest(("pyrightconfig.json", _PYPROJECT), folder):
        if file.name != _PYPROJECT or _tools(file) & {"basedpyright", "pyright"}:
            return file.parent
    return None


def _tools(file: Path) -> set[str]:
    """Return which tools a `pyproject.toml` has settings for; none where it cannot be read."""
    try:
        tool: object = tomllib.loads(file.read_text(encoding="utf-8")).get("tool")
    except (OSError, ValueError):
        return set()
    return set(cast("dict[str, object]", tool)) if isinstance(tool, dict) else set()
