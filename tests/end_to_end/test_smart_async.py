"""Tools of somebody else's server that go on as jobs; ours, on the same state folder, looks after them too."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.helpers import eventually
from tests.helpers.homes import servers_of
from tests.helpers.mcp import FINAL, Mcp, connect

OWN = (sys.executable, Path(__file__).with_name("own_server.py"))
BUDGETS = {"PATIENT_SECONDS": "60", "HASTY_SECONDS": "0.1", "WRONG_SECONDS": "soon"}


@pytest.fixture(scope="module")
async def own_server(module_home: Path) -> AsyncIterator[Mcp]:
    async with connect(module_home, command=OWN, env=BUDGETS) as connected:
        yield connected


@pytest.fixture(scope="module")
async def our_server(module_home: Path, own_server: Mcp) -> AsyncIterator[Mcp]:
    async with connect(own_server.home) as connected:
        yield connected


@pytest.fixture
def own(own_server: Mcp) -> Mcp:
    own_server.progress.clear()
    own_server.steps.clear()
    number = sum(1 for _ in own_server.directory.iterdir())
    directory = own_server.directory / f"{number}"
    directory.mkdir()
    return replace(own_server, directory=directory)


def gate(mcp: Mcp) -> str:
    return str(mcp.directory / "gate")


def open_gate(mcp: Mcp) -> None:
    Path(gate(mcp)).touch()


async def ended(mcp: Mcp, job_id: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        job = await mcp.job(job_id)
        return job if job["status"] in FINAL else None

    found = await eventually(look, what="the end of the job")
    assert found is not None
    return found


async def so_far(mcp: Mcp, job_id: str, current: float) -> None:
    async def look() -> bool:
        progress = (await mcp.job(job_id))["progress"]
        return bool(progress) and progress["current"] == current

    await eventually(look, what="progress")


async def test_the_tools_have_two_arguments_more_and_keep_their_own(own: Mcp) -> None:
    tools = {tool.name: tool for tool in await own.client.list_tools()}
    properties = tools["count"].input_schema["properties"]
    assert list(properties) == ["rows", "gate", "fail", "async_mode", "job_label"]
    assert properties["rows"]["description"] == "How many."
    assert properties["async_mode"]["default"] is False
    assert tools["count"].input_schema["required"] == ["rows"]
    assert {"py_job_status", "py_list_jobs", "py_cancel_job", "py_prune_jobs"} <= set(tools)


async def test_within_the_budget_the_caller_gets_the_result_itself(own: Mcp) -> None:
    assert await own.get("count", rows=3, job_label="quick") == {"rows": 3}
    first, *rest = own.progress
    assert first.startswith("job ")
    job_id = first.removeprefix("job ")
    assert (own.steps[-1], rest[-1]) == ((3, 3), f"job {job_id}: row 3")
    job = await own.job(job_id)
    assert (job["status"], job["result"], job["error"], job["label"]) == ("completed", {"rows": 3}, None, "quick")
    assert (job["kind"], job["source"]) == ("smart_async", "__main__.count")
    assert job["progress"] == {"current": 3, "total": 3, "message": "row 3"}


@pytest.mark.parametrize("tool", ["count_slowly", "grind"])
async def test_beyond_the_budget_it_goes_on_as_a_job_and_the_result_is_kept(own: Mcp, tool: str) -> None:
    handle = await own.get(tool, rows=4, gate=gate(own))
    assert set(handle) == {"job_id", "status", "message"}
    assert handle["status"] in ("pending", "running")
    assert "py_job_status" in handle["message"]
    await so_far(own, handle["job_id"], 1)
    assert (await own.job(handle["job_id"]))["status"] == "running"
    open_gate(own)
    job = await ended(own, handle["job_id"])
    assert (job["status"], job["result"]) == ("completed", {"rows": 4})
    assert '{"rows": 4}' in (await own.call("py_job_status", job_id=handle["job_id"])).text


async def test_async_mode_hands_back_a_pending_job_at_once(own: Mcp) -> None:
    handle = await own.get("count", rows=4, gate=gate(own), async_mode=True, job_label="later")
    assert handle == {"job_id": handle["job_id"], "status": "pending"}
    (listed,) = (await own.get("py_list_jobs", limit=1))["jobs"]
    assert (listed["id"], listed["label"]) == (handle["job_id"], "later")
    open_gate(own)
    assert (await ended(own, handle["job_id"]))["result"] == {"rows": 4}


@pytest.mark.requirement("3.9")
async def test_a_smart_async_tool_reports_progress_and_its_job_is_cancelled_killed_and_pruned(
    own: Mcp, our_server: Mcp
) -> None:
    job_id, other = [(await own.get("count", rows=10, gate=gate(own), async_mode=True))["job_id"] for _ in range(2)]
    await so_far(own, job_id, 5)
    job = (await own.get("py_job_status", job_id=job_id))["job"]
    assert job["status"] == "running"
    assert job["progress"] == {"current": 5, "total": 10, "message": "row 5"}
    running = await own.get("py_list_jobs", status_filter="running", limit=50)
    assert {job_id, other} == {job["id"] for job in running["jobs"]}
    assert (await own.get("py_cancel_job", job_id=job_id))["status"] == "cancelled"
    pruned = await own.get("py_prune_jobs", keep_completed=False, max_age_hours=24)
    assert pruned["removed"] == 0, "all of this is younger than a day"
    assert (await our_server.get("kill_job", job_id=other))["status"] == "killed"
    for one in (job_id, other):
        assert (await own.job(one))["status"] == "cancelled"
    assert (await own.get("py_prune_jobs", max_age_hours=0))["remaining"] == 0


async def test_a_cancelled_job_says_so_and_its_thread_ends_where_it_tells_its_progress(own: Mcp) -> None:
    handle = await own.get("grind", rows=4, gate=gate(own), async_mode=True)
    await so_far(own, handle["job_id"], 1)
    assert (await own.get("py_cancel_job", job_id=handle["job_id"]))["status"] == "cancelled"
    await eventually(Path(f"{gate(own)}.left").exists, what="the end of the thread")
    job = await own.job(handle["job_id"])
    assert (job["status"], job["result"], job["error"]) == ("cancelled", None, "It was cancelled on request.")


async def test_a_call_that_waits_is_told_when_its_job_is_cancelled(own: Mcp, our_server: Mcp) -> None:
    answers: list[dict[str, Any]] = []

    async def call() -> None:
        answers.append(await own.get("count", rows=4, gate=gate(own)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await eventually(lambda: own.progress, what="the job's id")
        await our_server.get("py_cancel_job", job_id=own.progress[0].removeprefix("job "))
    told = [(f"job {answer['job_id']}", answer["status"]) for answer in answers]
    assert told == [(own.progress[0], "cancelled")]


async def test_a_failure_reaches_the_caller_and_stays_with_its_traceback(own: Mcp) -> None:
    result = await own.client.call_tool("count", {"rows": 2, "fail": True}, raise_on_error=False)
    assert result.is_error
    assert "no more rows" in str(result.content)
    job = await own.job(own.progress[0].removeprefix("job "))
    assert (job["status"], job["result"], job["error"]) == ("failed", None, "ValueError: no more rows")
    assert job["new_stderr"].startswith("Traceback (most recent call last):\n")
    assert 'raise ValueError("no more rows")' in job["new_stderr"]
    assert "smart_async/jobs.py" not in job["new_stderr"], "only the frames of the tool's own code"


async def test_work_goes_on_when_its_call_is_cancelled(own: Mcp) -> None:
    with anyio.move_on_after(20) as call:

        async def leave() -> None:
            await eventually(lambda: own.progress, what="the job's id")
            call.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leave)
            await own.call("count", rows=4, gate=gate(own))
    job_id = own.progress[0].removeprefix("job ")
    assert (await own.job(job_id))["status"] == "running"
    open_gate(own)
    assert (await ended(own, job_id))["result"] == {"rows": 4}


async def test_a_wrong_budget_is_refused_by_the_name_of_its_variable(own: Mcp) -> None:
    result = await own.client.call_tool("never", {}, raise_on_error=False)
    assert result.is_error
    assert "WRONG_SECONDS is 'soon'; it must be a number between 0 and 86400." in str(result.content)


async def test_the_work_of_a_server_that_was_killed_is_lost_and_says_why(own: Mcp, our_server: Mcp) -> None:
    before = set(servers_of(own.home))
    async with connect(own.home, command=OWN, env=BUDGETS) as other:
        job_id = (await other.get("count", rows=4, gate=gate(own), async_mode=True))["job_id"]
        await so_far(our_server, job_id, 2)
        assert (await our_server.job(job_id))["status"] == "running"
        (server,) = set(servers_of(own.home)) - before
        os.kill(server, signal.SIGKILL)
        job = await ended(our_server, job_id)
    assert (job["status"], job["result"]) == ("lost", None)
    assert job["error"] == "The server that did this work in its own process has ended, and the work with it."
    assert job["progress"] == {"current": 2, "total": 4, "message": "row 2"}
