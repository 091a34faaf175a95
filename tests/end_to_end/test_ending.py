"""Ending programs: the whole tree goes, all output stays."""

import os
import signal
import time
from typing import Any

import pytest

from tests.helpers import eventually
from tests.helpers.mcp import Mcp
from tests.helpers.processes import alive
from tests.helpers.waiting import with_enough_time

ANSWERED_SECONDS = 3 + 24
"""Within 3 s after a deadline is promised; the rest is for a machine that is busy with other things."""


def pids(text: str) -> list[int]:
    return [int(word) for word in text.split() if word.isdecimal()]


async def timed_out(mcp: Mcp, source: str, first: str = "\n") -> dict[str, Any]:
    """Run a program until its time is over, which is not before it has printed something; return the result."""

    async def ask(seconds: float) -> dict[str, Any]:
        began = time.monotonic()
        result = await mcp.run(source, timeout_seconds=seconds, wait_seconds=100)
        assert time.monotonic() - began < seconds + ANSWERED_SECONDS
        return result

    result, _seconds = await with_enough_time(ask, lambda result: first in result["stdout"])
    assert result["status"] == "timed_out"
    return result


async def all_gone(found: list[int]) -> None:
    assert found
    await eventually(lambda: not any(alive(pid) for pid in found), what=f"the end of {found}")


@pytest.mark.case("B004")
async def test_a_leftover_that_holds_the_output_open_is_not_waited_for(mcp: Mcp) -> None:
    source = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True)"
    result = await mcp.run(source, timeout_seconds=30, wait_seconds=30)
    assert (result["status"], result["exit_code"]) == ("completed", 0)
    (pid,) = pids(result["stdout"])
    assert result["leftover_processes"] == [{"pid": pid, "command": "sleep"}]
    await all_gone([pid])


@pytest.mark.case("B005")
async def test_a_time_out_ends_the_grandchildren_too(mcp: Mcp) -> None:
    source = """
import os, subprocess, time
print("hi", os.getpid(), subprocess.Popen(["sleep", "300"]).pid,
      subprocess.Popen(["setsid", "sleep", "300"]).pid, flush=True)
time.sleep(300)
"""
    result = await timed_out(mcp, source)
    assert result["stdout"].startswith("hi ")
    assert result["stderr"].endswith("[TIMEOUT]")
    assert result["stopped_by"] == "SIGINT"
    await all_gone(pids(result["stdout"]))


@pytest.mark.case("B017")
async def test_a_thread_that_never_ends_is_ended_by_the_time_out(mcp: Mcp) -> None:
    source = """
import os, threading, time
threading.Thread(target=time.sleep, args=(300,), daemon={daemon}).start()
print("main done", os.getpid(), flush=True)
"""
    result = await timed_out(mcp, source.format(daemon=False))
    assert result["stdout"].startswith("main done")
    await all_gone(pids(result["stdout"]))
    daemon = await mcp.run(source.format(daemon=True), timeout_seconds=20)
    assert (daemon["status"], daemon["exit_code"]) == ("completed", 0)


@pytest.mark.case("B018")
@pytest.mark.parametrize(
    "call",
    [
        pytest.param("sum(range(10**12))", id="sum"),
        pytest.param("__import__('re').match('(a+)+$', 'a' * 40 + 'b')", id="regex", marks=pytest.mark.exhaustive),
    ],
)
async def test_code_inside_one_long_c_call_is_ended(mcp: Mcp, call: str) -> None:
    result = await timed_out(mcp, f"import os; print(os.getpid(), flush=True); {call}")
    assert result["stopped_by"] in ("SIGINT", "SIGTERM")
    await all_gone(pids(result["stdout"]))


@pytest.mark.case("B021")
async def test_a_program_that_asks_again_for_ever_ends_at_its_time_out(mcp: Mcp) -> None:
    source = """
import subprocess, sys
while subprocess.run([sys.executable, "-c", "input()"]).returncode: print("again")
"""
    result = await timed_out(mcp, source)
    assert set(result["stdout"].split()) == {"again"}


@pytest.mark.case("B043")
@pytest.mark.case("B130")
async def test_output_is_seen_while_it_is_printed_and_kept_up_to_the_time_out(mcp: Mcp) -> None:
    source = """
import os, time
for i in range(6):
    print(i)
    while not os.path.exists(f"seen {i}"): time.sleep(0.01)
"""

    async def watch(seconds: float) -> tuple[str, dict[str, Any]]:
        """Answer each number as it is seen; return the job's id and its end."""
        for seen in mcp.directory.iterdir():
            seen.unlink()
        job_id = await mcp.start(source, timeout_seconds=seconds)
        while (output := await mcp.output(job_id))["status"] == "running":
            for number in output["stdout"].split():
                if number in "01":
                    (mcp.directory / f"seen {number}").touch()
        return job_id, output

    (job_id, ended), _seconds = await with_enough_time(watch, lambda watched: "2" in watched[1]["stdout"], times=2)
    assert ended["state"] == "timed_out"
    assert ended["stdout"] == "0\n1\n2\n"
    log = mcp.home / "executions" / job_id / "stdout"
    (mcp.directory / "seen 2").touch()
    assert (log.read_bytes(), await mcp.output(job_id)) == (b"0\n1\n2\n", ended), "nothing is written after the end"


@pytest.mark.case("B127")
async def test_cancelling_ends_children_that_burn_the_processor(mcp: Mcp) -> None:
    source = """
import os
for _ in range(4):
    if os.fork() == 0:
        break
os.write(1, b"%d\\n" % os.getpid())
while True: pass
"""
    job_id = await mcp.start(source)

    async def all_five() -> list[int] | None:
        seen = pids((await mcp.output(job_id))["stdout"])
        return seen if len(seen) == 5 else None

    found = await eventually(all_five)
    assert (await mcp.get("py_cancel_job", job_id=job_id))["status"] == "cancelled"
    await all_gone(found or [])


@pytest.mark.case("B124")
async def test_cancelling_ends_a_daemon_that_left_its_session_and_cleared_its_environment(mcp: Mcp) -> None:
    source = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c",
            "import os, signal, time; signal.signal(15, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN);"
            "print(os.getpid(), flush=True); time.sleep(300)"], {})
    os._exit(0)
time.sleep(300)
"""
    job_id = await mcp.start(source)
    found = pids((await mcp.printed(job_id, "\n"))["stdout"])
    assert (await mcp.get("py_cancel_job", job_id=job_id))["status"] == "cancelled"
    await all_gone(found)


async def test_a_program_that_ignores_every_polite_signal_is_killed(mcp: Mcp) -> None:
    source = """
import os, signal, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(300)
"""
    result = await timed_out(mcp, source)
    assert (result["signal"], result["stopped_by"]) == ("SIGKILL", "SIGKILL")
    await all_gone(pids(result["stdout"]))


@pytest.mark.needs_uv
@pytest.mark.case("B007")
async def test_nothing_stands_between_a_program_with_packages_and_its_keeper(mcp: Mcp) -> None:
    source = "import os, time; print(os.getpid(), os.getppid(), flush=True); time.sleep(600)"
    given = {"script_content": source, "dependencies": ["six<1.17"], "async_mode": True}
    cancelled = (await mcp.get("run_script_with_dependencies", **given))["job_id"]
    python, keeper = pids((await mcp.printed(cancelled, "\n"))["stdout"])
    assert (await mcp.job(cancelled))["status"] == "running"
    assert (await mcp.get("py_cancel_job", job_id=cancelled))["status"] == "cancelled"
    await all_gone([python, keeper])
    killed = (await mcp.get("run_script_with_dependencies", **given))["job_id"]
    python, _keeper = pids((await mcp.printed(killed, "\n"))["stdout"])
    os.kill(python, signal.SIGKILL)
    ended = await mcp.finished(killed)
    assert (ended["state"], ended["exit_code"], ended["signal"]) == ("failed", 137, "SIGKILL")
