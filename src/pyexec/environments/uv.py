"""uv, the program that makes environments: where it is, and what its settings let us do."""

from collections.abc import Mapping
from pathlib import Path

from pyexec.domain.errors import UvNotFoundError
from pyexec.environments.search import home, is_program, is_shims, program_directories

_TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})
# A network that is gone shows within 14 s in place of 48 s (three tries of 3 s each, and the pauses between).
_IMPATIENT = {"UV_HTTP_CONNECT_TIMEOUT": "3", "UV_HTTP_RETRIES": "2"}


def find_uv(environ: Mapping[str, str], own_prefix: Path) -> Path:
    """Return the uv to use: the one `UV` names, the one installed with us, the first on PATH, the user's.

    Args:
        environ: The server's environment.
        own_prefix: The environment the server runs in (`sys.prefix`).

    Raises:
        UvNotFoundError: There is none.
    """
    user = home(environ)
    folders = [own_prefix / "bin"]
    folders += [folder for folder in program_directories(environ) if not is_shims(folder, environ)]
    if user is not None:
        folders += [user / ".local" / "bin", user / ".cargo" / "bin"]
    named = Path(environ.get("UV", ""))
    candidates = [named] if named.is_absolute() else []
    candidates += [folder / "uv" for folder in folders]
    for candidate in candidates:
        if is_program(candidate):
            return candidate
    raise UvNotFoundError(
        "uv is needed to run this and is not installed.",
        hint="Install it with `pip install uv`, or run with use_uv=false, which installs no packages.",
    )


def patience(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to add while preparing, so that a dead network shows within 15 s."""
    return {name: value for name, value in _IMPATIENT.items() if name not in environ}


def may_download_python(environ: Mapping[str, str]) -> bool:
    """Tell whether uv may fetch a missing interpreter by itself."""
    setting = environ.get("UV_PYTHON_DOWNLOADS", "").strip().lower() or "automatic"
    return setting == "automatic" and not is_true(environ, "UV_OFFLINE")


def is_true(environ: Mapping[str, str], name: str) -> bool:
    """Tell whether a switch of uv is on."""
    return environ.get(name, "").strip().lower() in _TRUE
