"""The MCP clients of this user: which have a configuration, whether pyexec is in it, and whether it would start."""

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from pyexec.app.diagnosis.checks import Check
from pyexec.environments.search import is_program, program_directories

MOST_BYTES = 64 * 1024 * 1024
COMMANDS = frozenset({"pyexec", "mcp-pyexec", "python-executor-mcp", "python-mcp-server"})
MODULES = frozenset({"pyexec", "python_mcp_server"})

# Strings are passed over whole, so that "//" in one is no comment.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file in which a client keeps its servers, and where in it; `*` stands for any name."""

    client: str
    file: Path
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server in a configuration: its name, and the command that starts it."""

    name: str
    command: str
    args: tuple[str, ...]


def check_clients(environ: Mapping[str, str], directory: Path, platform: str) -> tuple[Check, ...]:
    """Look into the configurations of the user and of the folder; nothing in them but commands is ever shown."""
    checks = [check for place in places(environ, directory, platform) for check in _check(place, environ)]
    if checks:
        return tuple(checks)
    return (Check(name="clients", status="ok", message="No client configuration was found; the README has examples."),)


def places(environ: Mapping[str, str], directory: Path, platform: str) -> list[Place]:
    """Return the files in which clients keep their servers, there or not."""
    user = Path(environ.get("HOME") or Path.home())
    is_mac = platform == "darwin"
    xdg = environ.get("XDG_CONFIG_HOME", "")
    config = Path(xdg) if xdg.startswith("/") else user / ".config"
    applications = user / "Library" / "Application Support" if is_mac else config
    claude = Path(environ.get("CLAUDE_CONFIG_DIR") or user)
    codex = Path(environ.get("CODEX_HOME") or user / ".codex")
    zed = user / ".config" / "zed" if is_mac else config / "zed"
    usual = ("mcpServers",)
    found = [
        Place(client="Claude Desktop", file=applications / "Claude" / "claude_desktop_config.json", keys=usual),
        Place(client="Claude Code", file=claude / ".claude.json", keys=usual),
        Place(client="Claude Code", file=claude / ".claude.json", keys=("projects", "*", "mcpServers")),
        Place(client="Claude Code", file=directory / ".mcp.json", keys=usual),
        Place(client="Cursor", file=user / ".cursor" / "mcp.json", keys=usual),
        Place(client="Cursor", file=directory / ".cursor" / "mcp.json", keys=usual),
        Place(client="VS Code", file=directory / ".vscode" / "mcp.json", keys=("servers",)),
        Place(client="Zed", file=zed / "settings.json", keys=("context_servers",)),
        Place(client="Zed", file=directory / ".zed" / "settings.json", keys=("context_servers",)),
        Place(client="Windsurf", file=user / ".codeium" / "windsurf" / "mcp_config.json", keys=usual),
        Place(client="Codex", file=codex / "config.toml", keys=("mcp_servers",)),
        Place(client="Gemini CLI", file=user / ".gemini" / "settings.json", keys=usual),
        Place(client="Gemini CLI", file=directory / ".gemini" / "settings.json", keys=usual),
    ]
    for name in ("Code", "Code - Insiders"):
        folder = applications / name / "User"
        found.append(Place(client="VS Code", file=folder / "mcp.json", keys=("servers",)))
        found.append(Place(client="VS Code", file=folder / "settings.json", keys=("mcp", "servers")))
    return found


def _check(place: Place, environ: Mapping[str, str]) -> Iterator[Check]:
    try:
        text = _read(place.file)
        if text is None:
            return
        servers = list(_servers(_parsed(place.file, text), place.keys))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or "it is damaged"
        message = f"{place.file} cannot be read: {why}."
        yield Check(name=place.client, status="warn", message=message, hint="The client cannot read it either.")
        return
    ours = [server for server in servers if _is_ours(server)]
    if not ours and "*" not in place.keys:
        yield Check(name=place.client, status="ok", message=f"{place.file}: pyexec is not in it.")
    for server in ours:
        missing = _missing(server, environ)
        where = f"{place.file}: {server.name!r} starts {server.command}"
        if missing is None:
            yield Check(name=place.client, status="ok", message=where)
        else:
            hint = "Name the absolute path of a pyexec that is installed, such as .venv/bin/pyexec of a checkout."
            yield Check(name=place.client, status="fail", message=f"{where}, and {missing} does not exist.", hint=hint)


def _read(path: Path) -> str | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        return file.read(MOST_BYTES).decode("utf-8-sig")


def _parsed(path: Path, text: str) -> object:
    if path.suffix == ".toml":
        return tomllib.loads(text)
    if not text.strip():
        return {}
    try:
        return json.loads(text)
    except ValueError:  # Several clients allow comments, and a comma at the end.
        without = _COMMENT.sub(lambda match: match[1] or "", text)
        return json.loads(_LAST_COMMA.sub(lambda match: match[1] or "", without))


def _servers(value: object, keys: tuple[str, ...]) -> Iterator[Server]:
    if not isinstance(value, dict):
        return
    table = cast("dict[str, Any]", value)
    if not keys:
        for name, entry in table.items():
            server = _server(str(name), entry)
            if server is not None:
                yield server
        return
    below = list(table.values()) if keys[0] == "*" else [table.get(keys[0])]
    for each in below:
        yield from _servers(each, keys[1:])


def _server(name: str, value: object) -> Server | None:
    if not isinstance(value, dict):
        return None
    entry = cast("dict[str, Any]", value)
    command: Any = entry.get("command")
    args: Any = entry.get("args")
    if isinstance(command, dict):  # An older form of Zed's.
        inner = cast("dict[str, Any]", command)
        command, args = inner.get("path"), inner.get("args")
    if not isinstance(command, str):
        return None
    words = cast("list[Any]", args) if isinstance(args, list) else []
    return Server(name=name, command=command, args=tuple(word for word in words if isinstance(word, str)))


def _is_ours(server: Server) -> bool:
    words = (server.command, *server.args)
    module = any(first == "-m" and second in MODULES for first, second in pairwise(words))
    return module or any(Path(word).name in COMMANDS for word in words)


def _missing(server: Server, environ: Mapping[str, str]) -> str | None:
    """Return what the command of a server needs and is not there."""
    command = Path(server.command).expanduser()
    if command.is_absolute():
        if not is_program(command):
            return str(command)
    elif not any(is_program(folder / command) for folder in program_directories(environ)):
        return f"{command} on PATH"
    for option, value in pairwise(server.args):
        is_folder = option in ("--directory", "--project") and "$" not in value
        if is_folder and not Path(value).expanduser().is_dir():
            return value
    return None
