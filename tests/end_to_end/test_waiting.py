"""How long a call waits, and what it hands back when the program takes longer."""

import time
from typing import Any

import anyio
import pytest

from tests.helpers import eventually
from tests.helpers.mcp import Mcp
from tests.helpers.waiting import with_enough_time

SERVER_ENV = {"PYEXEC_WAIT_SECONDS": "0.5", "PYEXEC_CONCURRENT": "2"}
FOR_EVER = "import time; print('begun', flush=True); time.sleep(300)"
STUBBORN = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("begun", flush=True)
time.sleep(300)
"""


async def test_wait_seconds_0_hands_back_at_once(mcp: Mcp) -> None:
    handle = await mcp.run(FOR_EVER, wait_seconds=0)
    assert handle["status"] in ("pending", "running")
    assert handle["exit_code"] is None
    assert "error" not in handle
    await mcp.printed(handle["job_id"], "begun")
    await mcp.get("kill_job", job_id=handle["job_id"])


async def test_async_mode_hands_back_a_pending_job(mcp: Mcp) -> None:
    for _ in range(3):
        handle = await mcp.run("print('done')", async_mode=True, wait_seconds=10)
        assert handle["status"] == "pending"
        assert (await mcp.finished(handle["job_id"]))["stdout"] == "done\n"


async def test_the_operator_sets_how_long_a_call_waits_by_default(mcp: Mcp) -> None:
    began = time.monotonic()
    handle = await mcp.run(FOR_EVER, request_id="default")
    assert time.monotonic() - began > 0.5
    assert (handle["status"] in ("pending", "running"), handle["exit_code"]) == (True, None)

    async def comes_along() -> bool:
        return (await mcp.run(FOR_EVER, request_id="default"))["stdout"] == "begun\n"

    await eventually(comes_along, what="what it has printed so far")
    await mcp.get("kill_job", job_id=handle["job_id"])


async def test_the_callers_wait_wins_over_the_default(mcp: Mcp) -> None:
    result = await mcp.run("import time; time.sleep(0.8); print('done')", wait_seconds=20)
    assert (result["status"], result["stdout"]) == ("completed", "done\n")


async def test_a_handle_tells_in_words_how_to_go_on(mcp: Mcp) -> None:
    answer = await mcp.call(
        "run_script_in_dir", directory="/tmp", script_content=FOR_EVER, use_uv=False, wait_seconds=0.1
    )
    assert not answer.is_error
    for tool in ("get_job_output", "py_job_status", "py_cancel_job"):
        assert tool in answer.text
    assert answer.data["job_id"] in answer.text
    await mcp.get("kill_job", job_id=answer.data["job_id"])


@pytest.mark.parametrize("times", [1, 3])
async def test_a_wait_that_reaches_the_time_out_goes_on_to_the_end(mcp: Mcp, times: int) -> None:
    async def ask(seconds: float) -> dict[str, Any]:
        began = time.monotonic()
        result = await mcp.run(STUBBORN, timeout_seconds=seconds, wait_seconds=seconds * times)
        assert time.monotonic() - began < seconds + 3 + 24, "3 s after the deadline; the rest is for a busy machine"
        assert result["status"] == "timed_out", "not handed back while it was being ended"
        return result

    result, seconds = await with_enough_time(ask, lambda result: result["stdout"])
    assert result["stdout"] == "begun\n"
    assert result["stderr"].endswith("[TIMEOUT]")
    assert (result["exit_code"], result["signal"], result["stopped_by"]) == (143, "SIGTERM", "SIGTERM")
    assert result["error"] == f"It ran longer than {seconds:g} s. It was ended with SIGTERM."
    assert "timeout_seconds" in result["advice"]


async def test_a_wait_that_ends_before_the_time_out_hands_back(mcp: Mcp) -> None:
    handle = await mcp.run(FOR_EVER, timeout_seconds=1.5, wait_seconds=0.1)
    assert handle["status"] in ("pending", "running")
    assert (await mcp.finished(handle["job_id"]))["state"] == "timed_out"


async def test_a_repeated_request_id_returns_the_same_execution(mcp: Mcp) -> None:
    count = "open('count', 'a').write('x'); print('ran')"
    first = await mcp.run(count, request_id="once", wait_seconds=20)
    again = await mcp.run(count, request_id="once")
    assert again["job_id"] == first["job_id"]
    assert again["stdout"] == "ran\n"
    assert (await mcp.run(count, request_id="twice", wait_seconds=20))["job_id"] != first["job_id"]
    assert (mcp.directory / "count").read_text() == "xx"


async def test_more_than_may_run_at_once_wait_in_order(mcp: Mcp) -> None:
    source = "import os, sys, time\nprint('begun', flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)"
    running = [await mcp.start(source, args=[f"may end {number}"]) for number in range(2)]
    for job_id in running:
        await mcp.printed(job_id, "begun")
    waiting = [await mcp.start("import time; print(time.time())") for _ in range(3)]
    rows = (await mcp.get("list_running_jobs"))["result"]
    assert {row["job_id"]: (row["running"], row["status"]) for row in rows} == {
        **dict.fromkeys(running, (True, "running")),
        **dict.fromkeys(waiting, (False, "pending")),
    }
    assert (await mcp.get("py_cancel_job", job_id=waiting[1]))["status"] == "cancelled"
    assert [(await mcp.job(job_id))["status"] for job_id in waiting] == ["pending", "cancelled", "pending"]
    (mcp.directory / "may end 0").touch()
    times = [(await mcp.finished(job_id))["stdout"] for job_id in (waiting[0], waiting[2])]
    assert float(times[0]) < float(times[1]), "one after the other, in the one place that is free"
    (mcp.directory / "may end 1").touch()
    await mcp.finished(running[1])
    assert (await mcp.output(waiting[1]))["stdout"] == "", "it never ran"


async def test_a_burst_of_calls_has_no_failure(mcp: Mcp) -> None:
    results: list[str] = []

    async def ask(number: int) -> None:
        results.append((await mcp.run(f"print({number})", wait_seconds=60))["stdout"])

    async with anyio.create_task_group() as calls:
        for number in range(16):
            calls.start_soon(ask, number)
    assert sorted(results, key=int) == [f"{number}\n" for number in range(16)]

    async def nothing_runs() -> bool:
        return not (await mcp.get("list_running_jobs"))["result"]

    await eventually(nothing_runs)
