"""The environment variables a script gets: the server's, an env file's, the call's."""

import io
import os
import re
from collections.abc import Mapping
from pathlib import Path

from dotenv.parser import Binding, parse_stream
from dotenv.variables import parse_variables

from pyexec.domain.errors import EnvFileError, InvalidArgumentError, NotFoundError

_OURS = "PYEXEC_"
# About the server's own start, wrong for what it starts. VIRTUAL_ENV: Python finds its environment without
# it, only installers read it, and they would install into the server's environment; uv sets it anew where it
# applies. The others would move the script to another folder or have uv read a file of its own choice.
_ABOUT_THE_SERVER = frozenset(
    {
        "VIRTUAL_ENV",
        "VIRTUAL_ENV_PROMPT",
        "UV_ENV_FILE",
        "UV_PROJECT",
        "UV_WORKING_DIR",
        "UV_WORKING_DIRECTORY",
    }
)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNREADABLE = "cannot be read; it should be NAME=value, with two quotes or none around the value"
_LARGEST_FILE = 1024 * 1024
_LARGEST_VARIABLE = 128 * 1024 - 1  # Linux takes no longer string (MAX_ARG_STRLEN, with its closing NUL).


def child_environment(server: Mapping[str, str], env_file: Path | None, env_vars: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a script and for the uv that prepares it.

    The server's own count least, then those of `env_file`, then `env_vars`. Of the server's, those named
    `PYEXEC_…` (our settings and credentials) are left out, and those about its own start (`VIRTUAL_ENV`,
    `UV_PROJECT`, `UV_WORKING_DIR`, `UV_ENV_FILE`); an env file or a call may still set them. Reads the file:
    call it in a thread.

    Raises:
        NotFoundError: There is no such file.
        EnvFileError: A line of the file cannot be read.
        InvalidArgumentError: A name or value that no process can have. The message never shows a value.
    """
    for name, value in env_vars.items():
        fault = _fault(name, value)
        if fault is not None:
            raise InvalidArgumentError(f"The environment variable {name!r} in env_vars {fault}.", variable=name)
    base = {
        name: value for name, value in server.items() if not name.startswith(_OURS) and name not in _ABOUT_THE_SERVER
    }
    from_file = read_env_file(env_file, base) if env_file is not None else {}
    return base | from_file | dict(env_vars)


def read_env_file(path: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Read an env file as python-dotenv does.

    It may have comments, quotes, values over several lines, `export`, and references: `${NAME}` and
    `${NAME:-default}` stand for what the file has set above, else for what `base` has. A name without `=`
    sets nothing.

    Args:
        path: The file.
        base: What references may mean besides the file's own variables.

    Returns:
        What the file sets, in its order.

    Raises:
        NotFoundError: There is no such file.
        EnvFileError: It is no text file, or a line cannot be read; the message names the file and the line,
            and nothing of what is in it.
    """
    values: dict[str, str] = {}
    for binding in parse_stream(io.StringIO(_text(path))):
        line = binding.original.line
        if binding.error:
            raise _line_error(path, line, _UNREADABLE)
        if binding.key is None:
            continue
        if binding.value is None:
            if not _PLAIN_NAME.fullmatch(binding.key):
                raise _line_error(path, line, _UNREADABLE)
            continue
        value = _expanded(binding, {**base, **values})
        fault = _fault(binding.key, value)
        if fault is not None:
            raise _line_error(path, line, f"sets a variable that {fault}")
        values[binding.key] = value
    return values


def _text(path: Path) -> str:
    try:
        if not path.exists():
            raise NotFoundError(f"There is no env file at {path}.", path=str(path))
        if not path.is_file():
            raise EnvFileError(f"The env file {path} is not a file.", path=str(path))
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise EnvFileError(f"The env file {path} cannot be opened: {error.strerror}.", path=str(path)) from error
    if len(content) > _LARGEST_FILE:
        raise EnvFileError(f"The env file {path} is larger than 1 MiB.", path=str(path))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _line_error(path, content.count(b"\n", 0, error.start) + 1, "is not UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _expanded(binding: Binding, known: Mapping[str, str]) -> str:
    return "".join(atom.resolve(known) for atom in parse_variables(binding.value or ""))


def _line_error(path: Path, line: int, what: str) -> EnvFileError:
    return EnvFileError(f"Line {line} of the env file {path} {what}.", path=str(path), line=line)


def _fault(name: str, value: str) -> str | None:
    """Say what keeps a process from having such a variable, without the value; None when nothing does."""
    if not name:
        return "has no name"
    if "=" in name or "\0" in name:
        return "has a name with '=' or NUL in it"
    if "\0" in value:
        return "has a value with NUL in it"
    try:
        size = len(os.fsencode(f"{name}={value}"))
    except UnicodeEncodeError:
        return "has characters that cannot be encoded"
    return "is longer than 128 KiB" if size > _LARGEST_VARIABLE else None
