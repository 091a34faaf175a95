"""The Pythons of this machine, to run programs on: one of each version."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

OLDEST = (3, 8)
_SHOW = "import sys; print(*sys.version_info[:2], sys.implementation.name)"


@cache
def pythons() -> dict[str, Path]:
    """Return them by version, oldest first; looks on PATH and where pyenv puts them."""
    found = {_shown(sys.version_info[:2]): Path(sys.executable)}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [*map(Path, os.environ.get("PATH", "").split(os.pathsep)), *sorted(pyenv.glob("versions/*/bin"))]
    for folder in folders:
        for minor in range(OLDEST[1], 20):
            python = folder / f"python3.{minor}"
            if f"3.{minor}" not in found and _is_it(python, f"3 {minor} cpython"):
                found[f"3.{minor}"] = python
    return dict(sorted(found.items(), key=lambda item: int(item[0].partition(".")[2])))


def _is_it(python: Path, expected: str) -> bool:
    if not os.access(python, os.X_OK):
        return False
    shown = subprocess.run([python, "-c", _SHOW], capture_output=True, text=True, check=False)
    return shown.stdout.strip() == expected


def _shown(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
