"""How far a program is, as a client sees it: in the job's record, and in notifications."""

from itertools import pairwise
from typing import Any

import anyio
import pytest

from tests.helpers import eventually
from tests.helpers.mcp import Mcp

PRINTING = """
import os, sys, time
stream = getattr(sys, sys.argv[1])
for number in range(11):
    print(f"::progress {number}/10 step {number}", file=stream)
    while number == 5 and not os.path.exists("go"): time.sleep(0.02)
print("done")
"""
TQDM = """
import os, time
from tqdm import tqdm
for number in tqdm(range(10), desc="epochs", mininterval=0):
    for _ in tqdm(range(3), desc="batches", leave=number % 2 == 0, mininterval=0): pass
    while number == 5 and not os.path.exists("go"): time.sleep(0.02)
"""
RICH = """
import os, time
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress
console = Console(stderr=True, force_terminal=True, width=100)
with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console) as progress:
    task, other = progress.add_task("[red]files", total=10), progress.add_task("bytes", total=None)
    for number in range(10):
        while number == 5 and not os.path.exists("go"): time.sleep(0.02)
        progress.advance(task)
        progress.advance(other, 100)
"""


async def at(mcp: Mcp, job_id: str, current: float) -> dict[str, Any]:
    """Wait until a job is so far; return its record."""

    async def look() -> dict[str, Any] | None:
        job = await mcp.job(job_id)
        return job if job["progress"] and job["progress"]["current"] == current else None

    found = await eventually(look, what=f"progress to {current:g}")
    assert found is not None
    return found


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_printed_line_tells_how_far_a_job_is_and_stays_when_it_has_ended(mcp: Mcp, stream: str) -> None:
    job_id = await mcp.start(PRINTING, args=[stream])
    job = await at(mcp, job_id, 5)
    assert (job["status"], job["progress"]) == ("running", {"current": 5, "total": 10, "message": "step 5"})
    assert "Progress: 5 of 10: `step 5`" in (await mcp.call("py_job_status", job_id=job_id)).text
    (listed,) = (await mcp.get("py_list_jobs", status_filter="running"))["jobs"]
    assert listed["progress"] == job["progress"]
    (mcp.directory / "go").touch()
    output = await mcp.finished(job_id)
    printed = "".join(f"::progress {number}/10 step {number}\n" for number in range(11))
    assert (output["stdout"], output["stderr"]) == (
        (f"{printed}done\n", "") if stream == "stdout" else ("done\n", printed)
    )
    assert (await mcp.job(job_id))["progress"] == {"current": 10, "total": 10, "message": "step 10"}


async def test_a_job_that_says_nothing_has_no_progress(mcp: Mcp) -> None:
    result = await mcp.run("print('::progress nan/10'); print('say ::progress 1/2'); print('\\x1b[A 50%| 3/4 [')")
    assert (await mcp.job(result["job_id"]))["progress"] is None


@pytest.fixture(scope="module")
async def with_bars(shared_server: Mcp) -> dict[str, Any]:
    """One environment that has tqdm and rich, for all tests here."""
    made = await shared_server.get("create_environment", name="bars", dependencies=["tqdm", "rich"], wait_seconds=100)
    assert made["status"] == "completed", made
    return {"environment": "bars", "use_uv": True}


@pytest.mark.needs_uv
@pytest.mark.parametrize(("source", "name"), [(TQDM, "epochs"), (RICH, "files")], ids=["tqdm", "rich"])
async def test_a_bar_on_stderr_tells_how_far_a_job_is(
    mcp: Mcp, with_bars: dict[str, Any], source: str, name: str
) -> None:
    job_id = await mcp.start(source, **with_bars)
    assert (await at(mcp, job_id, 5))["progress"] == {"current": 5, "total": 10, "message": name}
    (mcp.directory / "go").touch()
    assert (await mcp.finished(job_id))["exit_code"] == 0
    assert (await mcp.job(job_id))["progress"] == {"current": 10, "total": 10, "message": name}


async def test_a_waiting_client_is_told_and_the_numbers_only_rise(mcp: Mcp) -> None:
    source = """
import os, time
for number in range(1000): print(f"::progress {number % 10}/10 first")
print("::progress 9/10 first", flush=True)
while not os.path.exists("go"): time.sleep(0.02)
print("::progress 1/20 second", flush=True)
time.sleep(1)
print("::progress 20/20 second")
"""

    results: list[dict[str, Any]] = []

    async def call() -> None:
        results.append(await mcp.run(source, wait_seconds=60))

    def told() -> bool:
        return any("first" in message for message in mcp.progress)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await eventually(told, what="being told")
        (mcp.directory / "go").touch()
    (result,) = results
    assert result["status"] == "completed"
    first, *rest = mcp.progress
    assert first == f"job {result['job_id']}"
    assert all(message.startswith(first) for message in rest)
    numbers = [current for current, _total in mcp.steps]
    assert all(before < after for before, after in pairwise(numbers)), numbers
    assert mcp.steps[-1] == (29, 29), "nine of the first, then twenty of the second"
    assert (9, 10) in mcp.steps
    assert len(rest) < 100, "a thousand lines are no thousand notifications"


async def test_a_percentage_counts_to_a_hundred(mcp: Mcp) -> None:
    result = await mcp.run("print('::progress 40%')")
    assert (await mcp.job(result["job_id"]))["progress"] == {"current": 40, "total": 100}
