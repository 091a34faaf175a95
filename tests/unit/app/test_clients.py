"""Client configurations: found, read as the clients read them, and never shown beyond the command."""

import json
from pathlib import Path

import pytest

from pyexec.app.diagnosis.checks import Check
from pyexec.app.diagnosis.clients import check_clients, places

SECRET = "s3cr3t-in-a-configuration"


class Desktop:
    """A user's home with programs in it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "user"
        self.project = root / "project"
        self.programs = root / "bin"
        for folder in (self.home, self.project, self.programs):
            folder.mkdir()
        self.pyexec = self.program("pyexec")

    def program(self, name: str) -> Path:
        path = self.programs / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    def write(self, name: str, content: object, *, project: bool = False) -> Path:
        path = (self.project if project else self.home) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def check(self, platform: str = "linux") -> tuple[Check, ...]:
        checks = check_clients({"HOME": str(self.home), "PATH": str(self.programs)}, self.project, platform)
        assert SECRET not in repr(checks)
        return checks

    def server(self, command: object = None, *args: str) -> dict[str, object]:
        started = str(self.pyexec) if command is None else command
        return {"pyexec": {"command": started, "args": [*args, SECRET], "env": {"TOKEN": SECRET}}}


@pytest.fixture
def desktop(tmp_path: Path) -> Desktop:
    return Desktop(tmp_path)


def test_without_any_configuration_there_is_nothing_wrong(desktop: Desktop) -> None:
    (check,) = desktop.check()
    assert (check.name, check.status) == ("clients", "ok")


def test_every_client_is_found_where_it_keeps_its_servers(desktop: Desktop) -> None:
    usual = {"mcpServers": desktop.server()}
    toml = f'[mcp_servers.pyexec]\ncommand = "{desktop.pyexec}"\nargs = ["serve"]\n'
    files = {
        "Claude Desktop": desktop.write(".config/Claude/claude_desktop_config.json", usual),
        "Claude Code": desktop.write(".claude.json", {"projects": {"/work": usual}, "mcpServers": {}}),
        "Cursor": desktop.write(".cursor/mcp.json", usual, project=True),
        "VS Code": desktop.write(".config/Code/User/mcp.json", {"servers": desktop.server()}),
        "Zed": desktop.write(
            ".config/zed/settings.json",
            f'// Zed\n{{"theme": "http://x//y", /* ours */ "context_servers": {{"pyexec": '
            f'{{"command": {{"path": "{desktop.pyexec}", "args": ["serve",],}},}},}},}}',
        ),
        "Windsurf": desktop.write(".codeium/windsurf/mcp_config.json", usual),
        "Codex": desktop.write(".codex/config.toml", toml),
        "Gemini CLI": desktop.write(".gemini/settings.json", usual),
    }
    found = {check.name: check for check in desktop.check() if "is not in it" not in check.message}
    assert found.keys() == files.keys()
    for client, file in files.items():
        assert found[client].status == "ok", found[client]
        assert found[client].message == f"{file}: 'pyexec' starts {desktop.pyexec}"


def test_on_a_mac_applications_keep_theirs_in_the_library(desktop: Desktop) -> None:
    file = desktop.write("Library/Application Support/Claude/claude_desktop_config.json", {"mcpServers": {}})
    assert [check.message for check in desktop.check("darwin")] == [f"{file}: pyexec is not in it."]


@pytest.mark.parametrize(
    ("command", "args", "missing"),
    [
        ("/not/there/pyexec", ["serve"], "/not/there/pyexec"),
        ("python-mcp-server", [], "python-mcp-server on PATH"),
        ("uv", ["run", "--directory", "/not/there", "pyexec", "serve"], "/not/there"),
        ("python3", ["-m", "python_mcp_server"], "python3 on PATH"),
        ("pyexec", ["serve", "--directory", "/no/folder"], "/no/folder"),
    ],
)
def test_a_command_that_would_not_start_is_a_failure(
    desktop: Desktop, command: str, args: list[str], missing: str
) -> None:
    desktop.program("uv")
    desktop.write(".cursor/mcp.json", {"mcpServers": {"mine": {"command": command, "args": args}}})
    (check,) = desktop.check()
    assert (check.status, check.name) == ("fail", "Cursor")
    assert check.message.endswith(f"'mine' starts {command}, and {missing} does not exist.")
    assert check.hint is not None


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("uv", ["run", "--directory", "{project}", "python-executor-mcp"]),
        ("pyexec", ["serve", "--directory", "${workspaceFolder}"]),
        ("python3", ["-m", "pyexec", "serve"]),
    ],
)
def test_other_ways_to_start_it_are_known(desktop: Desktop, command: str, args: list[str]) -> None:
    desktop.program("uv")
    desktop.program("python3")
    words = [word.replace("{project}", str(desktop.project)) for word in args]
    desktop.write(".cursor/mcp.json", {"mcpServers": {"mine": {"command": command, "args": words}}})
    (check,) = desktop.check()
    assert (check.status, check.message.endswith(f"'mine' starts {command}")) == ("ok", True)


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "[]", '{"mcpServers": ["pyexec"]}', '{"mcpServers": null}', ""])
def test_a_damaged_configuration_breaks_nothing(desktop: Desktop, text: str) -> None:
    desktop.write(".cursor/mcp.json", text)
    (check,) = desktop.check()
    assert check.status == ("warn" if (text[:1] == "{" and len(text) == 1) or len(text) > 1000 else "ok")


def test_places_do_not_depend_on_what_there_is(desktop: Desktop) -> None:
    found = places({"HOME": "/u", "XDG_CONFIG_HOME": "/c", "CODEX_HOME": "/x"}, desktop.project, "linux")
    files = {str(place.file) for place in found}
    assert {"/c/Claude/claude_desktop_config.json", "/c/zed/settings.json", "/x/config.toml"} <= files
