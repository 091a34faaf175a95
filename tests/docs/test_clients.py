"""The client configurations in the README start the server."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.docs.conftest import PAGES, ROOT
from tests.helpers.forks import PYEXEC
from tests.helpers.mcp import connect

README = next(page for page in PAGES if page.path == ROOT / "README.md")
SECTION = README.text.partition("## Add it to your client")[2].partition("\n## ")[0]
BLOCKS: list[dict[str, Any]] = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", SECTION, re.DOTALL)]
PROGRAM = "/path/to/pyexec/.venv/bin/pyexec"


def _commands() -> dict[str, list[str]]:
    """Return the command line of each configuration, by the key that the client looks under."""
    found: dict[str, list[str]] = {}
    for block in BLOCKS:
        ((key, servers),) = block.items()
        found[key] = [servers["pyexec"]["command"], *servers["pyexec"]["args"]]
    line = next(line for line in SECTION.splitlines() if line.startswith("claude mcp add"))
    found["claude mcp add"] = shlex.split(line.partition(" -- ")[2])
    return found


def _alike() -> dict[str, list[str]]:
    """Return each command line that differs from the others, by the names of those that have it."""
    placed = {
        name: [word.replace("${workspaceFolder}", "/path/to/work") for word in words]
        for name, words in sorted(_commands().items())
    }
    distinct = {tuple(words) for words in placed.values()}
    return {", ".join(name for name in placed if placed[name] == [*words]): [*words] for words in sorted(distinct)}


def test_there_is_a_configuration_for_each_client() -> None:
    assert set(_commands()) == {"claude mcp add", "mcpServers", "servers", "context_servers"}
    for name in ("Claude Code", "Claude Desktop", "Cursor", "VS Code", "Zed"):
        assert f"**{name}**" in SECTION


@pytest.mark.parametrize(
    "clients",
    [
        pytest.param(clients, marks=[pytest.mark.exhaustive] if number else [])
        for number, clients in enumerate(_alike())
    ],
)
async def test_a_configuration_starts_the_server(clients: str, state_home: Path) -> None:
    program, *arguments = _alike()[clients]
    assert program == PROGRAM
    work = state_home.parent / "work"  # Where the client starts the server, and where a placeholder points.
    given = [str(work) if word == "/path/to/work" else word for word in arguments]
    async with connect(state_home, command=[PYEXEC, *given]) as mcp:
        result = await mcp.run("import os; print(os.getcwd())", directory=".")
    assert result["stdout"] == f"{work}\n"
