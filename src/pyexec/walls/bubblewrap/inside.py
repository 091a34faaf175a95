"""From the folder of an environment to what is inside a wall."""

from collections.abc import Mapping
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Literal

from pyexec.domain.errors import WallUnavailableError
from pyexec.domain.sandboxes import PRELOADED
from pyexec.walls.bubblewrap.contents import Inside
from pyexec.walls.bubblewrap.python import SandboxPython, look_at

GUEST = "pyexec_guest.inner:run"
INSTALL_FONTS = "pyexec_guest.fonts:install"
_LIBRARIES = "LD_LIBRARY_PATH"
_PACKAGES = "lib/python3*/site-packages"

Ahead = Literal["told", "found", "nothing"]
"""What is imported ahead: what the operator says, or as much of it as there is, or nothing but the guest itself."""


def inside_of(
    environment: Path,
    preloaded: tuple[str, ...] | None,
    environ: Mapping[str, str],
    *,
    guest: str = GUEST,
    ahead: Ahead = "told",
) -> Inside:
    """Return what is inside the wall for an environment; blocks while its interpreter is started and asked.

    Args:
        environment: The folder of the environment.
        preloaded: What is imported ahead; None: as much of `PRELOADED` as is installed.
        environ: What the interpreter needs to start.
        guest: What a sandbox runs.
        ahead: How much of that is imported ahead.

    Raises:
        WallUnavailableError: The environment is none, or its interpreter does not start or is too old.
    """
    packages = next(environment.glob(_PACKAGES), None)
    if packages is None:
        raise WallUnavailableError(f"The environment {environment} has no packages.")
    if preloaded is None or ahead != "told":
        wanted = PRELOADED if preloaded is None else preloaded
        preloaded = tuple(name for name in wanted if ahead != "nothing" and _has(packages, name.partition(".")[0]))
    python = look_at(environment / "bin" / "python", environ)
    return Inside(
        python=python,
        packages=packages,
        guest=guest,
        preloaded=(*preloaded, INSTALL_FONTS),
        environment=needs_of(python, environ),
    )


def needs_of(python: SandboxPython, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what of the environment an interpreter needs behind the wall too: where its own libraries are."""
    own = [place for place in environ.get(_LIBRARIES, "").split(":") if Path(place).is_relative_to(python.prefix)]
    return {_LIBRARIES: ":".join(own)} if own else {}


def _has(packages: Path, module: str) -> bool:
    """Tell whether a module is installed; nothing is imported."""
    files = (packages / f"{module}{suffix}" for suffix in all_suffixes())
    return (packages / module).is_dir() or any(file.is_file() for file in files)
