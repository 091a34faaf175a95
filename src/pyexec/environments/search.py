"""Where Python interpreters are on this machine. Only looks: nothing is started, nothing downloaded."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_VERSIONED = re.compile(r"python3\.(\d+)")


def home(environ: Mapping[str, str]) -> Path | None:
    """Return the home folder the environment names."""
    value = environ.get("HOME", "")
    return Path(value) if Path(value).is_absolute() else None


def program_directories(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders on PATH in order; relative ones are left out, they would be the caller's."""
    entries = (Path(entry) for entry in environ.get("PATH", "").split(":") if entry)
    return tuple(dict.fromkeys(entry for entry in entries if entry.is_absolute()))


def is_shims(directory: Path, environ: Mapping[str, str]) -> bool:
    """Tell whether a folder holds pyenv's stand-ins, which work or fail by the folder they are started in."""
    root = _pyenv_root(environ)
    return directory.name == "shims" and root is not None and _real(directory).is_relative_to(_real(root))


def first_interpreters(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield what `python3` and `python` on PATH are, in order.

    Pyenv's stand-ins count as the versions that are active in pyenv. The link of a virtual environment is
    yielded as it is: resolved, it would be another environment.
    """
    for directory in program_directories(environ):
        if is_shims(directory, environ):
            yield from _pyenv_active(environ)
        else:
            yield from _programs(directory / name for name in ("python3", "python"))


def all_interpreters(environ: Mapping[str, str], own: Path | None) -> Iterator[Path]:
    """Yield every interpreter once, in the order they are preferred.

    The order is: `python3` and `python` on PATH, `python3.X` there, pyenv's, uv's, the server's own. Two
    names of one interpreter count once, under the first name. A virtual environment is not its base.
    """
    seen: set[Path] = set()
    for path in _everywhere(environ, own):
        identity = _identity(path)
        if identity not in seen:
            seen.add(identity)
            yield path


def origin(path: Path, environ: Mapping[str, str]) -> str:
    """Return where an interpreter that was found here is from, in a word or two."""
    if (path.parent.parent / "pyvenv.cfg").is_file():
        return "a virtual environment"
    for name, folder in (("uv", _uv_folder(environ)), ("pyenv", _pyenv_root(environ))):
        if folder is not None and (path.is_relative_to(folder) or _real(path).is_relative_to(_real(folder))):
            return name
    return "PATH" if path.parent in program_directories(environ) else "what pyexec runs on"


def _everywhere(environ: Mapping[str, str], own: Path | None) -> Iterator[Path]:
    yield from first_interpreters(environ)
    for directory in program_directories(environ):
        if not is_shims(directory, environ):
            yield from _versioned(directory)
    root = _pyenv_root(environ)
    if root is not None:
        yield from _installed(root / "versions", "python")
    uv_folder = _uv_folder(environ)
    if uv_folder is not None:
        yield from _installed(uv_folder, "python3")
    if own is not None:
        yield from _programs([own])


def _pyenv_root(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("PYENV_ROOT", "")
    if Path(named).is_absolute():
        return Path(named)
    user = home(environ)
    return user / ".pyenv" if user is not None else None


def _uv_folder(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("UV_PYTHON_INSTALL_DIR", "")
    if Path(named).is_absolute():
        return Path(named)
    data = environ.get("XDG_DATA_HOME", "")
    if Path(data).is_absolute():
        return Path(data) / "uv" / "python"
    user = home(environ)
    return user / ".local" / "share" / "uv" / "python" if user is not None else None


def _pyenv_active(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield what pyenv has chosen for this user: PYENV_VERSION, else its `version` file.

    A `.python-version` file in some folder is no choice of the user's for this server.
    """
    root = _pyenv_root(environ)
    if root is None:
        return
    names = environ.get("PYENV_VERSION", "").replace(":", " ").split()
    if not names:
        try:
            names = (root / "version").read_text(encoding="utf-8").split()
        except (OSError, ValueError):
            return
    for name in names:
        for directory in _entries(root / "versions"):  # '3.12' stands for the newest 3.12 there.
            if directory.name == name or directory.name.startswith(f"{name}."):
                yield from _programs([directory / "bin" / "python"])
                break


def _installed(folder: Path, program: str) -> Iterator[Path]:
    for directory in _entries(folder):
        yield from _programs([directory / "bin" / program])


def _versioned(directory: Path) -> Iterator[Path]:
    try:
        names = os.listdir(directory)  # Thousands in /usr/bin: no Path for each.
    except OSError:
        return
    found = {int(match[1]): match[0] for match in map(_VERSIONED.fullmatch, names) if match is not None}
    yield from _programs(directory / found[minor] for minor in sorted(found, reverse=True))


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder, the highest version first; nothing when it cannot be read."""
    try:
        return sorted(folder.iterdir(), key=_natural, reverse=True)
    except OSError:
        return []


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def _programs(paths: Iterator[Path] | list[Path]) -> Iterator[Path]:
    for path in paths:
        if is_program(path):
            yield path


def is_program(path: Path) -> bool:
    """Tell whether there is a file here that may be executed."""
    try:
        return path.is_file() and path.stat().st_mode & 0o111 != 0
    except OSError:
        return False


def _identity(path: Path) -> Path:
    environment = path.parent.parent
    return _real(environment) if (environment / "pyvenv.cfg").is_file() else _real(path)


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # A loop of links; RuntimeError before Python 3.13.
        return path
