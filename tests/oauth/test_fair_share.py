"""Five users of one server that has room for one sandbox at a time, one of them with a hundred calls in line."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.helpers.waiting import eventually
from tests.oauth.site import Site, serving
from tests.walls.bubblewrap import SERVER, share_environments

pytestmark = [pytest.mark.needs_uv, pytest.mark.root]

QUIET = ("ada", "bob", "cyd", "dan")
CALLS = 100
SETTINGS = {
    **SERVER,
    "PYEXEC_SANDBOX_MEMORY": "256",
    "PYEXEC_SANDBOX_READY": "0",
    "PYEXEC_SANDBOXES_MEMORY": "1280",
}
UNTIL = "import os, time\nwhile True: time.sleep(0.01)"


@pytest.fixture(scope="module")
async def site(module_home: Path, pytestconfig: pytest.Config) -> AsyncIterator[Site]:
    share_environments(module_home, pytestconfig)
    async with serving(module_home, sandboxed=True, **SETTINGS) as made:
        yield made


class User:
    """One of them, by a token of their own."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.token = site.key.token(site.url, subject=name)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.site.call(self.token, tool, **arguments)
        assert not answer.get("isError"), answer
        return answer["structuredContent"]

    async def begin(self, code: str = "1") -> str:
        return (await self.call("execute_python", code=code, wait_seconds=0))["job_id"]

    async def job(self, job_id: str) -> dict[str, Any]:
        return (await self.call("py_job_status", job_id=job_id))["job"]

    async def in_line(self, job_id: str) -> str:
        """Return what a job is said to wait for, once it does."""

        async def said() -> str | None:
            message = ((await self.job(job_id))["progress"] or {}).get("message") or ""
            return message if message.startswith("queued") else None

        return await eventually(said, what="a job that waits") or ""

    async def ended(self, job_id: str) -> dict[str, Any]:
        async def job() -> dict[str, Any] | None:
            found = await self.job(job_id)
            return found if found["completed_at"] else None

        found = await eventually(job, what="a job that has ended")
        assert found is not None
        return found


@pytest.mark.exhaustive
async def test_each_of_four_users_starts_before_the_rest_of_one_with_a_hundred(site: Site) -> None:
    noisy, quiet = User(site, "noisy"), [User(site, name) for name in QUIET]
    first = await noisy.begin(UNTIL)

    async def running() -> bool:
        return (await noisy.job(first))["status"] == "running"

    await eventually(running)
    line = [await noisy.begin() for _ in range(CALLS)]
    assert "room for one more sandbox" in await noisy.in_line(line[0])
    assert "your executions" in await noisy.in_line(line[-1])
    theirs = [(user, await user.begin()) for user in quiet]
    for user, job_id in theirs:
        assert "room for one more sandbox" in await user.in_line(job_id)

    await noisy.call("kill_job", job_id=first)

    started = sorted([(await user.ended(job_id))["started_at"] for user, job_id in theirs])
    async with anyio.create_task_group() as tasks:  # What is left of them only has to go.
        for job_id in reversed(line[10:]):
            tasks.start_soon(lambda job_id=job_id: noisy.call("kill_job", job_id=job_id))
    jobs = [await noisy.ended(job_id) for job_id in line]
    assert not [job for job in jobs if job["started_at"] and job["started_at"] < started[-1]]
