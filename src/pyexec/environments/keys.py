"""What an environment is asked for, and the key under which its resolution is remembered."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyexec.environments.fingerprints import fingerprint
from pyexec.environments.interpreters import Interpreter
from pyexec.environments.local import fingerprint_of, local_path, metadata_fingerprint
from pyexec.environments.python_versions import show
from pyexec.environments.uv_settings import settings_files

_FORMAT = 1
# Settings of uv that change how it works and not what it finds; any other may change the resolution.
_WITHOUT_INFLUENCE = frozenset(
    {
        "UV",
        "UV_CACHE_DIR",
        "UV_COMPILE_BYTECODE",
        "UV_CONCURRENT_BUILDS",
        "UV_CONCURRENT_DOWNLOADS",
        "UV_CONCURRENT_INSTALLS",
        "UV_HTTP_CONNECT_TIMEOUT",
        "UV_HTTP_RETRIES",
        "UV_HTTP_TIMEOUT",
        "UV_LINK_MODE",
        "UV_LOCK_TIMEOUT",
        "UV_NO_CACHE",
        "UV_NO_PROGRESS",
        "UV_OFFLINE",
        "UV_PYTHON_DOWNLOADS",
        "UV_PYTHON_INSTALL_DIR",
    }
)

# Those that name files with requirements in them, or folders with packages.
_FILES = ("UV_CONSTRAINT", "UV_BUILD_CONSTRAINT", "UV_OVERRIDE", "UV_EXCLUDE", "UV_FIND_LINKS")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedProject:
    """A project whose uv.lock says what is installed.

    Attributes:
        folder: The project, perhaps a member of a workspace.
        lock: The lock, in that folder or at the root of the workspace.
    """

    folder: Path
    lock: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRequest:
    """What an environment is asked for. Texts may have credentials in them: they are never stored as they are.

    Attributes:
        python: The path of an interpreter, or a version for uv to fetch.
        interpreter: The interpreter, where it is here.
        requirements: What is asked for, with local paths as `file://` URLs.
        editables: Local projects whose modules are imported from where they lie.
        constraints: Versions that must not be left by what else is installed.
        options: For uv.
        index_url: The package index to use in place of the usual one.
        project: A project whose lock counts before `requirements`.
        paths: Folders that modules are imported from besides.
    """

    python: str
    interpreter: Interpreter | None
    requirements: tuple[str, ...] = field(default=(), repr=False)
    editables: tuple[Path, ...] = ()
    constraints: tuple[str, ...] = field(default=(), repr=False)
    options: tuple[str, ...] = ()
    index_url: str | None = field(default=None, repr=False)
    project: LockedProject | None = None
    paths: tuple[Path, ...] = ()


def request_key(request: EnvironmentRequest, environ: Mapping[str, str], directory: Path) -> str:
    """Return the same key for requests that resolve to the same, as long as no index changes.

    Settings of uv count, in variables and in the files it reads for `directory`, and so does the state of local
    packages. Reads some files' dates.
    """
    content = [
        _FORMAT,
        request.python,
        show(request.interpreter.version) if request.interpreter else None,
        repr(fingerprint(request.interpreter.path)) if request.interpreter else None,
        sorted(request.requirements),
        [fingerprint_of(path) for path in _copied(request)],
        [[str(path), metadata_fingerprint(path)] for path in sorted(request.editables)],
        sorted(request.constraints),
        request.options,
        request.index_url,
        _of_project(request.project),
        [str(path) for path in request.paths],
        *uv_influence(environ, directory),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]


def uv_influence(environ: Mapping[str, str], directory: Path) -> list[object]:
    """Return what says how uv is set for a folder, as far as that may change what it finds. Reads some files' dates."""
    return [
        sorted(
            (name, value)
            for name, value in environ.items()
            if name.startswith("UV_") and name not in _WITHOUT_INFLUENCE
        ),
        [[str(file), fingerprint_of(file)] for file in settings_files(environ, directory)],
        [
            fingerprint_of(directory / name)
            for setting in _FILES
            for name in environ.get(setting, "").replace(",", " ").split()
        ],
    ]


def _copied(request: EnvironmentRequest) -> list[Path]:
    """Return the local projects and wheels of which a copy is installed."""
    paths = [path for one in request.requirements if (path := local_path(one)) is not None]
    return sorted(path for path in paths if path not in request.editables)


def _of_project(project: LockedProject | None) -> list[str]:
    if project is None:
        return []
    files = (project.lock, project.folder / "pyproject.toml")
    return [str(project.folder), *(fingerprint_of(file) for file in files)]
