"""The tools that look after jobs."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from datetime import datetime

import pytest

from tests.helpers import eventually
from tests.helpers.mcp import Mcp
from tests.helpers.processes import alive

FOR_EVER = "import sys, time; print('out', flush=True); print('err', file=sys.stderr, flush=True); time.sleep(300)"
JOB_FIELDS = {
    "id",
    "label",
    "status",
    "created_at",
    "started_at",
    "completed_at",
    "progress",
    "result",
    "error",
    "new_stdout",
    "new_stderr",
}


async def test_running_jobs_are_listed_with_real_types(mcp: Mcp) -> None:
    job_id = await mcp.start(FOR_EVER, job_label="watched")
    await mcp.printed(job_id, "out")
    (row,) = (await mcp.get("list_running_jobs"))["result"]
    assert alive(row.pop("pid"))
    assert isinstance(row.pop("elapsed_seconds"), float)
    assert row.pop("stdout_chunks") >= 1
    assert row.pop("stderr_chunks") >= 0
    assert row == {
        "job_id": job_id,
        "running": True,
        "exit_code": None,
        "stream": False,
        "status": "running",
        "label": "watched",
    }
    assert f"| `{job_id}` | running |" in (await mcp.call("list_running_jobs")).text
    await mcp.get("kill_job", job_id=job_id)
    assert (await mcp.get("list_running_jobs"))["result"] == []
    assert (await mcp.call("list_running_jobs")).text == "No jobs are running."


async def test_output_is_read_while_a_job_runs_and_after_it(mcp: Mcp) -> None:
    job_id = await mcp.start(FOR_EVER)
    seen = await mcp.printed(job_id, "out")
    assert (seen["status"], seen["state"], seen["exit_code"]) == ("running", "running", None)
    assert isinstance(seen["elapsed_seconds"], float)
    await mcp.get("py_cancel_job", job_id=job_id)
    ended = await mcp.output(job_id)
    assert (ended["status"], ended["state"], ended["exit_code"]) == ("finished", "cancelled", 130)
    assert ended["stdout"] == "out\n"
    assert ended["stderr"].startswith("err\n")
    assert ended["elapsed_seconds"] == (await mcp.output(job_id))["elapsed_seconds"], "the clock has stopped"


async def test_a_jobs_status_has_every_field(mcp: Mcp) -> None:
    job_id = await mcp.start("print('so far', flush=True); import time; time.sleep(300)", job_label="whole")
    await mcp.printed(job_id, "so far")
    running = await mcp.job(job_id)
    assert running.keys() >= JOB_FIELDS
    assert (running["id"], running["label"], running["status"]) == (job_id, "whole", "running")
    assert (running["completed_at"], running["result"], running["error"]) == (None, None, None)
    assert (running["progress"], running["new_stdout"], running["new_stderr"]) == (None, "so far\n", "")
    await mcp.get("kill_job", job_id=job_id)
    ended = await mcp.job(job_id)
    assert ended.keys() >= JOB_FIELDS
    assert ended["status"] == "cancelled"
    assert ended["error"] == "It was killed on request. It was ended with SIGKILL."
    times = [datetime.fromisoformat(ended[name]) for name in ("created_at", "started_at", "completed_at")]
    assert times == sorted(times)
    assert ended["result"].keys() >= {"exit_code", "signal", "cpu_seconds", "peak_rss_mb", "stdout_bytes"}
    assert (ended["result"]["exit_code"], ended["result"]["signal"]) == (137, "SIGKILL")
    assert 1 < ended["result"]["peak_rss_mb"] < 500


async def test_incremental_status_answers_what_is_new_since_the_cursor(mcp: Mcp) -> None:
    source = """
import os, time
print("one", flush=True)
while not os.path.exists("go on"): time.sleep(0.02)
print("two", flush=True)
"""
    job_id = await mcp.start(source)
    await mcp.printed(job_id, "one")
    first = await mcp.get("py_job_status", job_id=job_id)
    assert first["job"]["new_stdout"] == "one\n"
    nothing = await mcp.get("py_job_status", job_id=job_id, cursor=first["next_cursor"])
    assert (nothing["job"]["new_stdout"], nothing["next_cursor"]) == ("", first["next_cursor"])
    (mcp.directory / "go on").touch()
    await mcp.finished(job_id)
    second = await mcp.get("py_job_status", job_id=job_id, cursor=first["next_cursor"])
    assert second["job"]["new_stdout"] == "two\n"
    again = await mcp.get("py_job_status", job_id=job_id, cursor=first["next_cursor"])
    assert again == second, "reading changes nothing"
    whole = await mcp.get("py_job_status", job_id=job_id, incremental=False, cursor=first["next_cursor"])
    assert whole["job"]["new_stdout"] == "one\ntwo\n"


async def test_jobs_are_listed_newest_first_by_state_and_up_to_a_limit(mcp: Mcp) -> None:
    await mcp.get("py_prune_jobs", max_age_hours=0)
    good = [(await mcp.run(f"print({number})"))["job_id"] for number in range(3)]
    bad = (await mcp.run("raise SystemExit(3)"))["job_id"]
    listed = await mcp.get("py_list_jobs")
    assert [job["id"] for job in listed["jobs"]] == [bad, *reversed(good)]
    assert listed["total"] == 4
    some = await mcp.get("py_list_jobs", status_filter="completed", limit=2)
    assert ([job["id"] for job in some["jobs"]], some["total"]) == ([good[2], good[1]], 3)
    failed = await mcp.get("py_list_jobs", status_filter="failed")
    assert [(job["id"], job["result"]["exit_code"]) for job in failed["jobs"]] == [(bad, 3)]
    assert (await mcp.get("py_list_jobs", status_filter="lost")) == {"jobs": [], "total": 0}


async def test_kill_and_cancel_say_how_the_job_ended(mcp: Mcp) -> None:
    killed, cancelled = await mcp.start(FOR_EVER), await mcp.start(FOR_EVER)
    for job_id in (killed, cancelled):
        await mcp.printed(job_id, "out")
    assert await mcp.get("kill_job", job_id=killed) == {"job_id": killed, "status": "killed", "exit_code": 137}
    assert await mcp.get("py_cancel_job", job_id=cancelled) == {
        "job_id": cancelled,
        "status": "cancelled",
        "exit_code": 130,
    }
    for tool in ("kill_job", "py_cancel_job"):
        again = await mcp.get(tool, job_id=killed)
        assert (again["status"], again["exit_code"]) == ("cancelled", 137)
        assert "already ended" in again["note"]


async def test_pruning_spares_what_it_is_told_to_and_what_runs(mcp: Mcp) -> None:
    await mcp.get("py_prune_jobs", max_age_hours=0)
    good, bad = (await mcp.run("pass"))["job_id"], (await mcp.run("1/0"))["job_id"]
    running = await mcp.start(FOR_EVER)
    await mcp.printed(running, "out")
    assert await mcp.get("py_prune_jobs") == {"removed": 0, "remaining": 3}, "all are younger than a day"
    spared = await mcp.get("py_prune_jobs", keep_completed=True, keep_failed=True, max_age_hours=0)
    assert spared == {"removed": 0, "remaining": 3}
    assert await mcp.get("py_prune_jobs", keep_completed=True, max_age_hours=0) == {"removed": 1, "remaining": 2}
    assert (await mcp.refused("get_job_output", job_id=bad))["error_code"] == "not_found"
    assert await mcp.get("py_prune_jobs", keep_failed=True, max_age_hours=None) == {"removed": 1, "remaining": 1}
    assert (await mcp.refused("py_job_status", job_id=good))["error_code"] == "not_found"
    assert not (mcp.home / "executions" / good).exists()
    assert (await mcp.job(running))["status"] == "running"
    await mcp.get("kill_job", job_id=running)


@pytest.mark.case("B123")
async def test_a_program_killed_from_outside_has_failed_and_all_goes_on(mcp: Mcp) -> None:
    job_id = await mcp.start(FOR_EVER)
    await mcp.printed(job_id, "out")
    (row,) = (await mcp.get("list_running_jobs"))["result"]
    os.kill(row["pid"], signal.SIGKILL)
    ended = await mcp.finished(job_id)
    assert (ended["state"], ended["exit_code"], ended["signal"]) == ("failed", 137, "SIGKILL")
    assert "pyexec did not send" in ended["error"]
    assert (await mcp.get("py_cancel_job", job_id=job_id))["status"] == "failed", "nothing to do is no failure"
    assert (await mcp.run("print('again')"))["stdout"] == "again\n"


@pytest.mark.case("B122")
@pytest.mark.parametrize("state", ["completed", "running"])
async def test_a_pid_that_belongs_to_somebody_else_by_now_is_left_alone(mcp: Mcp, state: str) -> None:
    job_id = (await mcp.run("print('over')"))["job_id"]
    await mcp.get("py_list_jobs")  # By then its end has been noted down.
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as bystander:
        with sqlite3.connect(mcp.home / "pyexec.db") as database:
            change = "UPDATE executions SET pid = ?, state = ? WHERE id = ?"
            assert database.execute(change, (bystander.pid, state, job_id)).rowcount == 1
        database.close()
        started = mcp.home / "executions" / job_id / "started.json"
        started.write_text(json.dumps({**json.loads(started.read_text()), "pid": bystander.pid}))
        for tool in ("py_cancel_job", "kill_job"):
            answer = await mcp.get(tool, job_id=job_id)
            assert (answer["status"], answer["exit_code"]) == ("completed", 0)
            assert "already ended" in answer["note"]
        assert bystander.poll() is None


@pytest.mark.case("B122")
async def test_a_lost_job_whose_pid_was_taken_over_hurts_nobody(mcp: Mcp) -> None:
    job_id = (await mcp.run("print('over')"))["job_id"]
    await mcp.get("py_list_jobs")  # By then its end has been noted down.
    folder = mcp.home / "executions" / job_id
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as bystander:
        with sqlite3.connect(mcp.home / "pyexec.db") as database:
            database.execute("UPDATE executions SET pid = ?, state = 'running' WHERE id = ?", (bystander.pid, job_id))
        database.close()
        started = folder / "started.json"
        started.write_text(json.dumps({**json.loads(started.read_text()), "pid": bystander.pid}))
        (folder / "outcome.json").unlink()
        assert (await mcp.get("kill_job", job_id=job_id))["status"] == "lost"
        assert (await mcp.output(job_id))["stdout"] == "over\n"
        assert bystander.poll() is None


@pytest.mark.case("B124")
async def test_a_program_that_daemonises_has_exited_and_what_it_left_is_named_and_ended(mcp: Mcp) -> None:
    source = """
import os, sys, time
if os.fork():
    sys.exit(0)
os.setsid()
print(os.getpid(), flush=True)
time.sleep(300)
"""
    result = await mcp.run(source)
    assert (result["status"], result["exit_code"]) == ("completed", 0)
    (left,) = result["leftover_processes"]
    assert left["pid"] == int(result["stdout"])
    assert left["command"].startswith("python")
    await eventually(lambda: not alive(left["pid"]))
    note = (await mcp.call("py_job_status", job_id=result["job_id"])).data["job"]["result"]["leftover_processes"]
    assert note == [left]
