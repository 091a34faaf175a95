"""uv, the program that makes environments: where it is, and the commands we give it.

No command makes anything in the caller's folder: no `.venv`, no `uv.lock`, no `egg-info`. uv's settings in
that folder and above (`uv.toml`, `[tool.uv]`) count, since they say where packages come from.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyexec.domain.errors import UvNotFoundError
from pyexec.environments.search import home, is_program, is_shims, program_directories

# Errors are shown, warnings and progress are not; colours would be bytes in a message.
_QUIET = ("--quiet", "--color", "never")
_SHOW_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
_TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})
# A network that is gone shows within 14 s in place of 48 s (three tries of 3 s each, and the pauses between).
_IMPATIENT = {"UV_HTTP_CONNECT_TIMEOUT": "3", "UV_HTTP_RETRIES": "2"}


def find_uv(environ: Mapping[str, str], own_prefix: Path) -> Path:
    """Return the uv to use: the one `UV` names, the first on PATH, the one installed with us, the user's.

    Args:
        environ: The server's environment.
        own_prefix: The environment the server runs in (`sys.prefix`).

    Raises:
        UvNotFoundError: There is none.
    """
    user = home(environ)
    folders = [folder for folder in program_directories(environ) if not is_shims(folder, environ)]
    folders.append(own_prefix / "bin")
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


def resolve_command(
    uv: Path, *, python: str, requirements_in: Path, output: Path, options: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the command that turns requirements into a list of pinned packages, written to `output`.

    Args:
        uv: The program.
        python: A path, or a version that is known to be here: uv would silently resolve for another one.
        requirements_in: What is asked for, one requirement a line.
        output: Where the list goes.
        options: More options, such as `--index`.
    """
    return (
        *(str(uv), "pip", "compile", *_QUIET, "--no-header", "--no-annotate", "--no-universal"),
        *("--python", python, "--output-file", str(output), *options, str(requirements_in)),
    )


def warm_command(uv: Path, *, python: str, requirements: Path | None, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command that fetches what a run needs, the interpreter too; it prints the version of Python.

    It runs nothing of the user's. After it, `run_command` with `offline` needs no network and shows no
    installing.

    Args:
        uv: The program.
        python: A path, or a version or range for uv to find or download.
        requirements: The list `resolve_command` wrote; None when only the interpreter is needed.
        options: The options `resolve_command` got.
    """
    return (*_run(uv, python, requirements, options), "--", "python", "-I", "-S", "-c", _SHOW_VERSION)


def run_command(
    uv: Path,
    *,
    python: str,
    script: Path,
    args: Sequence[str],
    requirements: Path | None,
    options: Sequence[str] = (),
    isolated: bool = False,
    offline: bool = False,
) -> tuple[str, ...]:
    """Return the command that runs a script.

    uv is given `python SCRIPT`, not `SCRIPT`: so the file may have any name, and uv does not read its header.

    Args:
        uv: The program.
        python: A path, or a version or range.
        script: The script; a relative path starts at the folder it is run in.
        args: The script's arguments.
        requirements: The list `resolve_command` wrote; the script then sees these packages only.
        options: The options `resolve_command` got.
        isolated: Hide the packages that the interpreter itself has, also when there are no requirements.
        offline: Take packages from uv's cache without asking the index (0.06 s in place of 0.23 s); right
            after `warm_command` has put them there.
    """
    flags = [*_run(uv, python, requirements, options)]
    if isolated and requirements is None:
        flags.append("--isolated")
    if requirements is None and Path(python).is_absolute():
        flags.append("--no-config")  # Nothing to install: no fault in somebody's settings can stop the run.
    elif offline:
        flags.append("--offline")
    return (*flags, "--", "python", *script_arguments(script, args))


def script_arguments(script: Path, args: Sequence[str]) -> tuple[str, ...]:
    """Return what comes after `python`; a script called `-c` must not be taken for an option."""
    path = str(script)
    return (f"./{path}" if path.startswith("-") else path, *args)


def offline(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a `resolve_command` or `warm_command` that takes what uv has cached and never asks the index.

    For a second try when the network is away: it may find older versions, and says so when something is
    missing.
    """
    verb = 3 if command[1] == "pip" else 2
    return (*command[:verb], "--offline", *command[verb:])


def patience(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to add while preparing, so that a dead network shows within 15 s."""
    return {name: value for name, value in _IMPATIENT.items() if name not in environ}


def may_download_python(environ: Mapping[str, str]) -> bool:
    """Tell whether uv may fetch a missing interpreter by itself."""
    setting = environ.get("UV_PYTHON_DOWNLOADS", "").strip().lower() or "automatic"
    return setting == "automatic" and not _is_true(environ, "UV_OFFLINE")


def keeps_cache(environ: Mapping[str, str]) -> bool:
    """Tell whether uv keeps what it has fetched for the next command."""
    return not _is_true(environ, "UV_NO_CACHE")


def _is_true(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").strip().lower() in _TRUE


def _run(uv: Path, python: str, requirements: Path | None, options: Sequence[str]) -> tuple[str, ...]:
    packages = ("--isolated", "--with-requirements", str(requirements)) if requirements is not None else ()
    return (str(uv), "run", *_QUIET, "--no-project", "--no-env-file", "--python", python, *packages, *options)
