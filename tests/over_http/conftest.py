"""A server over HTTP for the tests of a file, with tools that run on the host: transport is the same for all."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.helpers.homes import temporary_home
from tests.helpers.over_http import Server, serve


@pytest.fixture(scope="package")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The server of all files that set nothing for theirs."""
    with temporary_home(used=False) as home:
        async with serve(home, options=["--toolsets", "core,jobs"], env={"PYEXEC_HTTP_BODY_MB": "5"}) as server:
            yield server


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Server:
    """A server that answers."""
    found: Server = request.getfixturevalue("shared")
    return found


@pytest.fixture
def work(server: Server, request: pytest.FixtureRequest) -> Path:
    """A folder of the test's own."""
    folder = server.directory / request.node.name[:60]
    folder.mkdir()
    return folder
