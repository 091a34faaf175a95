"""The Pythons of this machine, to run programs on: one of each version."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

OLDEST = (3, 8)
_SHOW = "import sys; print(*sys.version_info[:2], sys.implementation.name, sys.executable)"


@cache
def pythons() -> dict[str, Path]:
    """Return them by version, oldest first; looks on PATH and where pyenv puts them."""
    found = {_shown(sys.version_info[:2]): Path(sys.executable)}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [*map(Path, os.environ.get("PATH", "").split(os.pathsep)), *sorted(pyenv.glob("versions/*/bin"))]
    shims = pyenv / "shims"  # Each takes a while to find one of those that are looked at anyway.
    for folder in folders:
        if folder == shims:
            continue
        for minor in range(OLDEST[1], 20):
            python = folder / f"python3.{minor}"
            itself = None if f"3.{minor}" in found else _itself(python, f"3 {minor} cpython ")
            if itself is not None:
                found[f"3.{minor}"] = itself
    return dict(sorted(found.items(), key=lambda item: int(item[0].partition(".")[2])))


def _itself(python: Path, expected: str) -> Path | None:
    """Return the interpreter that a command starts, which may be a shim, if it is the expected one."""
    if not os.access(python, os.X_OK):
        return None
    shown = subprocess.run([python, "-c", _SHOW], capture_output=True, text=True, check=False).stdout.strip()
    return Path(shown.removeprefix(expected)) if shown.startswith(expected) else None


def _shown(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
