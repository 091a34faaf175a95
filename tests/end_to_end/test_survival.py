"""Servers come and go, and clients vanish: what was started goes on, and is found again."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.helpers import eventually
from tests.helpers.homes import keepers_of
from tests.helpers.mcp import Answer, Mcp, connect
from tests.helpers.pipes import PipeServer, pipe_server
from tests.helpers.processes import alive
from tests.helpers.processes import eventually as wait_until

# Several servers are started one after the other.

COUNTING = """
import os, sys, time
print(os.getpid(), flush=True)
number = 0
while not os.path.exists("enough for " + sys.argv[1]):
    print(f"line {number}", flush=True)
    number += 1
    time.sleep(0.01)
print(f"{number} lines", flush=True)
while not os.path.exists("over for " + sys.argv[1]): time.sleep(0.02)
"""


def counting(directory: Path, name: str) -> dict[str, Any]:
    return {"directory": str(directory), "script_content": COUNTING, "args": [name], "use_uv": False}


def begin(server: PipeServer, home: Path, directory: Path, name: str) -> str:
    """Make a call that waits for its program; return the job's id, known from its first progress message."""
    before = len(server.progress())
    server.call("run_script_in_dir", progress_token=name, **counting(directory, name))
    wait_until(lambda: len(server.progress()) > before, 40)
    job_id = server.progress()[before].removeprefix("job ")
    log = home / "executions" / job_id / "stdout"
    wait_until(lambda: log.exists() and log.read_bytes().count(b"line") > 3, 40)
    return job_id


def require_every_line(printed: str) -> int:
    """Check that the output is complete and return the program's pid."""
    pid, *lines, last = printed.splitlines()
    assert lines == [f"line {number}" for number in range(len(lines))], "not a byte is lost"
    assert last == f"{len(lines)} lines"
    return int(pid)


async def read_on_and_end(mcp: Mcp, job_id: str, name: str) -> None:
    """Do with a job of a server that is gone what its own client could have done."""
    (row,) = (await mcp.get("list_running_jobs"))["result"]
    assert (row["job_id"], row["running"], alive(row["pid"])) == (job_id, True, True)
    first = await mcp.get("py_job_status", job_id=job_id)
    (mcp.directory / f"enough for {name}").touch()
    end = await mcp.printed(job_id, " lines\n")
    more = await mcp.get("py_job_status", job_id=job_id, cursor=first["next_cursor"])
    assert first["job"]["new_stdout"] + more["job"]["new_stdout"] == end["stdout"]
    assert require_every_line(end["stdout"]) == row["pid"]
    assert (await mcp.get("py_cancel_job", job_id=job_id))["status"] == "cancelled"
    await eventually(lambda: not alive(row["pid"]))


@pytest.mark.case("B131")
async def test_a_client_that_hangs_up_in_the_middle_of_a_call_ends_nothing(mcp: Mcp) -> None:
    with pipe_server(mcp.home) as server:
        server.initialize()
        job_id = begin(server, mcp.home, mcp.directory, "the vanished")
        assert server.hang_up() == 0
    await read_on_and_end(mcp, job_id, "the vanished")


@pytest.mark.case("B121")
async def test_a_killed_server_loses_nothing_whether_it_ends_before_the_next_server_comes_or_not(
    state_home: Path,
) -> None:
    work = state_home.parent / "work"
    with pipe_server(state_home) as server:
        server.initialize()
        shorter = begin(server, state_home, work, "the shorter")
        longer = begin(server, state_home, work, "the longer")
        server.kill()
    for flag in ("enough", "over"):
        (work / f"{flag} for the shorter").touch()
    wait_until(lambda: (state_home / "executions" / shorter / "outcome.json").exists())
    async with connect(state_home) as mcp:
        output = await mcp.output(shorter)
        assert (output["status"], output["state"], output["exit_code"]) == ("finished", "completed", 0)
        require_every_line(output["stdout"])
        await read_on_and_end(mcp, longer, "the longer")
        assert [job["id"] for job in (await mcp.get("py_list_jobs"))["jobs"]] == [longer, shorter]


async def test_two_servers_share_their_jobs(mcp: Mcp) -> None:
    async with connect(mcp.home) as other:
        job_id = await mcp.start(COUNTING, args=["both"], request_id="shared")
        await other.printed(job_id, "line 3")
        again = await other.get(
            "run_script_in_dir", **counting(mcp.directory, "both"), request_id="shared", wait_seconds=0
        )
        assert again["job_id"] == job_id
        assert (await other.job(job_id))["status"] == "running"
        assert (await other.get("py_cancel_job", job_id=job_id))["status"] == "cancelled"
        assert (await mcp.job(job_id))["status"] == "cancelled"
        assert await mcp.stream(job_id) == await other.stream(job_id)
        await require_one_start(mcp, other)


async def require_one_start(mcp: Mcp, other: Mcp) -> None:
    """Make the same call six times at once, through two servers."""
    answers: list[Answer] = []

    async def ask(connected: Mcp) -> None:
        given = {"directory": str(mcp.directory), "use_uv": False, "request_id": "at once", "wait_seconds": 40}
        source = "open('starts', 'a').write('x'); print('ran')"
        answers.append(await connected.call("run_script_in_dir", script_content=source, **given))

    async with anyio.create_task_group() as calls:
        for connected in (mcp, other) * 3:
            calls.start_soon(ask, connected)
    assert {answer.data["job_id"] for answer in answers} == {answers[0].data["job_id"]}
    assert [answer.data["stdout"] for answer in answers] == ["ran\n"] * 6
    assert (mcp.directory / "starts").read_text() == "x"


async def test_a_job_whose_keeper_is_killed_is_lost_with_its_output_and_its_processes_are_ended(mcp: Mcp) -> None:
    job_id = await mcp.start(COUNTING, args=["nobody"])
    pid = int((await mcp.printed(job_id, "line 3"))["stdout"].split()[0])
    (keeper,) = keepers_of(mcp.home)
    os.kill(keeper, signal.SIGKILL)

    async def is_lost() -> bool:
        return (await mcp.job(job_id))["status"] == "lost"

    await eventually(is_lost)
    lost = await mcp.output(job_id)
    assert (lost["status"], lost["state"], lost["exit_code"]) == ("finished", "lost", None)
    assert "keeper" in lost["error"]
    first, *lines = lost["stdout"].splitlines()
    assert first == str(pid)
    assert lines == [f"line {number}" for number in range(len(lines))], "a true prefix"
    await eventually(lambda: not alive(pid))
    outcome = json.loads((mcp.home / "executions" / job_id / "outcome.json").read_text())
    assert outcome["kind"] == "lost"
