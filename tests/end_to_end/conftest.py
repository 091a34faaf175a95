"""Servers for the tests: starting one costs seconds of work, so most tests share one."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.commands import Command
from tests.helpers.homes import temporary_home
from tests.helpers.mcp import Mcp, connect
from tests.walls.bubblewrap import share_environments


@pytest.fixture(scope="package")
async def shared_server() -> AsyncIterator[Mcp]:
    """The server of all files that set nothing for theirs."""
    with temporary_home() as home:
        async with connect(home, env={"WHO": "server", "ONLY_SERVER": "yes"}) as connected:
            yield connected


@pytest.fixture(scope="module")
async def own_server(module_home: Path, request: pytest.FixtureRequest) -> AsyncIterator[Mcp]:
    """The server of a file that says in `SERVER_ENV` what is set for it."""
    async with connect(module_home, env=request.module.SERVER_ENV) as connected:
        yield connected


@pytest.fixture(scope="module")
def environments(module_home: Path, pytestconfig: pytest.Config) -> Path:
    """Those that the tests of walls have made, so that a minute of compiling is not spent twice; their folder."""
    return share_environments(module_home, pytestconfig)


@pytest.fixture
def mcp(request: pytest.FixtureRequest) -> Mcp:
    """A client of a running server, and a working directory of the test's own."""
    has_own = hasattr(request.module, "SERVER_ENV")
    server: Mcp = request.getfixturevalue("own_server" if has_own else "shared_server")
    number = sum(1 for _ in server.directory.iterdir())
    directory = server.directory / f"{number}"
    directory.mkdir()
    server.progress.clear()
    server.steps.clear()
    return replace(server, directory=directory)


@pytest.fixture(scope="module")
def run() -> Iterator[Command]:
    """The command line, on a state folder of the file's own."""
    with temporary_home() as home:
        work = home.parent / "work"
        work.mkdir()
        yield Command(home, work)
