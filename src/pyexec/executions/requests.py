"""Checking what a caller asks for, before anything is made."""

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.domain.executions import ExecutionRequest
from pyexec.domain.limits import ExecutionLimits
from pyexec.environments.credentials import HOW_TO_ENCODE, is_readable, masked
from pyexec.environments.names import check_name

_TEXT_LENGTH = 200
_PATH_LENGTH = 300
_SOURCES = ("script_path", "script_content", "module")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRequest:
    """A request whose paths exist and whose values are allowed. `script` is None for inline code and modules."""

    request: ExecutionRequest
    directory: Path
    script: Path | None
    env_file: Path | None


def check_request(request: ExecutionRequest, limits: ExecutionLimits, base: Path) -> CheckedRequest:
    """Check a request; relative paths count from its directory, and a missing or relative directory from `base`.

    Raises:
        InvalidArgumentError: A value is not allowed.
        NotFoundError: A directory or file does not exist.
    """
    check_values(request, limits)
    directory = existing_directory(request.directory, base)
    script = _existing_file("script_path", request.script_path, directory, or_folder=True)
    env_file = _existing_file("env_file", request.env_file, directory)
    if request.request_id == "":
        request = replace(request, request_id=None)
    return CheckedRequest(request=request, directory=directory, script=script, env_file=env_file)


def check_values(request: ExecutionRequest, limits: ExecutionLimits) -> None:
    """Check what can be without a look at the disk.

    Raises:
        InvalidArgumentError: A value is not allowed.
    """
    _check_source(request, limits)
    _check_values(request, limits)


def _check_source(request: ExecutionRequest, limits: ExecutionLimits) -> None:
    given = [name for name in _SOURCES if getattr(request, name) is not None]
    if len(given) != 1:
        wrong = f"{' and '.join(given)} were given together" if given else "There is nothing to run"
        raise InvalidArgumentError(f"{wrong}.", hint=f"Give exactly one of {', '.join(_SOURCES)}.")
    if request.module is not None and not all(part.isidentifier() for part in request.module.split(".")):
        raise InvalidArgumentError(
            f"module is {request.module[:_TEXT_LENGTH]!r}; it must be a name as in an import, such as 'http.server'.",
            hint="Its arguments go into args; the name of a module may differ from that of its distribution.",
        )
    for name, text in (("script_content", request.script_content), ("stdin", request.stdin)):
        if text is not None and len(text.encode("utf-8", "surrogatepass")) > limits.source:
            raise InvalidArgumentError(
                f"{name} has {len(text)} characters; at most {limits.source} bytes are allowed.",
                hint="Put it into a file and give its path instead.",
            )
    if request.script_content is not None and "\0" in request.script_content:
        raise InvalidArgumentError("script_content holds a NUL character, which Python source cannot have.")


def _check_values(request: ExecutionRequest, limits: ExecutionLimits) -> None:
    timeout = request.timeout_seconds
    if not math.isfinite(timeout) or not 0 <= timeout <= limits.timeout_ceiling:
        raise InvalidArgumentError(
            f"timeout_seconds is {timeout:g}; it must be between 0 (none) and {limits.timeout_ceiling:g}."
        )
    if request.keep_as is not None:
        check_name(request.keep_as)
    if request.index_url is not None and not is_readable(request.index_url):
        raise InvalidArgumentError("index_url cannot be read.", hint=HOW_TO_ENCODE)
    if request.index_url is not None and not request.index_url.startswith(("https://", "http://", "file:///")):
        raise InvalidArgumentError(
            f"index_url is {masked(request.index_url)!r}; it must be an http(s) or file URL, such as "
            "'https://user:token@host/simple'."
        )
    for argument in request.args:
        _require_bytes("An item of args", argument)
    for name, value in request.env_vars.items():
        _require_bytes(f"env_vars[{name!r}]", value)
    if request.stdin is not None:
        _require_bytes("stdin", request.stdin, nul=True)
    size = sum(len(os.fsencode(argument)) + 1 for argument in request.args)
    if size > limits.arguments:
        raise InvalidArgumentError(
            f"args are {size} bytes long; at most {limits.arguments} are allowed.",
            hint="Pass long data through stdin or a file.",
        )
    check_text("job_label", request.label)
    check_text("request_id", request.request_id)


def check_text(name: str, value: str | None) -> None:
    """Check a name that a caller gives to something of theirs.

    Raises:
        InvalidArgumentError: It is too long, or no text.
    """
    if value is not None and not value.isascii():
        _require_text(name, value)
    if value is not None and "\0" in value:
        raise InvalidArgumentError(f"{name} holds a NUL character.")
    if value is not None and len(value) > _TEXT_LENGTH:
        raise InvalidArgumentError(f"{name} has {len(value)} characters; at most {_TEXT_LENGTH} are allowed.")


def _require_bytes(what: str, text: str, *, nul: bool = False) -> None:
    """Refuse text that no bytes stand for; what the system itself made from bytes that are no text is fine."""
    if not nul and "\0" in text:
        raise InvalidArgumentError(f"{what} holds a NUL character, which no program can be given.")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{what} holds a lone surrogate, which is no character.") from None


def _require_text(what: str, text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{what} holds a lone surrogate, which is no character.") from None


def existing_directory(name: str | None, base: Path) -> Path:
    """Return the directory that a caller names; a missing or relative one counts from `base`.

    Raises:
        InvalidArgumentError: It is no directory, or no path.
        NotFoundError: It does not exist.
    """
    path = base if name is None else base / _expanded("directory", name)
    if not _exists("directory", path):
        raise NotFoundError(f"The directory {_short(path)} does not exist.", hint="Give the absolute path of one.")
    if not path.is_dir():
        raise InvalidArgumentError(f"directory {_short(path)} is not a directory.")
    return path.absolute()


def _existing_file(argument: str, name: str | None, directory: Path, *, or_folder: bool = False) -> Path | None:
    if name is None:
        return None
    path = existing_path(argument, name, directory)
    if not path.is_file() and not (or_folder and path.is_dir()):
        raise InvalidArgumentError(f"{argument} {_short(path)} is not a file.")
    return path


def existing_path(argument: str, name: str, directory: Path) -> Path:
    """Return the file or folder that a caller names; a relative one counts from `directory`.

    Raises:
        InvalidArgumentError: It is no path.
        NotFoundError: It does not exist.
    """
    path = directory / _expanded(argument, name)
    if not _exists(argument, path):
        hint = f"Relative paths count from {directory}."
        raise NotFoundError(f"{argument} {_short(path)} does not exist.", hint=hint)
    return path


def _exists(argument: str, path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, UnicodeEncodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it holds a lone surrogate"
        raise InvalidArgumentError(f"{argument} {_short(path)} cannot be looked at: {why}.") from None


def _short(path: Path) -> str:
    text = ascii(str(path))[1:-1] if not str(path).isprintable() else str(path)
    return text if len(text) <= _PATH_LENGTH else f"{text[:_PATH_LENGTH]}..."


def _expanded(argument: str, name: str) -> Path:
    if not name or "\0" in name:
        raise InvalidArgumentError(f"{argument} is {'empty' if not name else 'not a path: it holds a NUL character'}.")
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise NotFoundError(f"{argument} {name} begins with a user who does not exist.") from None
