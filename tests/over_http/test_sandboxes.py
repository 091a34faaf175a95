"""What a service offers by default: Python in sandboxes, and the jobs that come of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.helpers.over_http import Server, serve
from tests.walls.bubblewrap import SERVER, share_environments

pytestmark = [pytest.mark.needs_uv, pytest.mark.root]


@pytest.fixture(scope="module")
async def service(module_home: Path, pytestconfig: pytest.Config) -> AsyncIterator[Server]:
    """A server as it comes, but for packages that the tests of walls have installed already."""
    share_environments(module_home, pytestconfig)
    async with serve(module_home, env=SERVER) as server:
        yield server


async def test_code_runs_in_sandboxes_and_nothing_runs_on_the_host(service: Server) -> None:
    async with service.client() as client:
        names = {tool.name for tool in await client.list_tools()}
        assert {"execute_python", "py_job_status", "kill_job"} <= names
        assert not {name for name in names if name.startswith(("run_", "benchmark", "profile", "save_"))}
        given = {"code": "import os; [os.getuid(), os.getcwd()]", "wait_seconds": 250}
        answer = await client.call_tool("execute_python", given)
    assert (answer.structured_content or {})["result"] == "[1000, '/work']"
    assert '"where": "sandbox"' in (service.home / "audit.jsonl").read_text()
