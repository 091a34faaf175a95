"""`pyexec jobs`: what a person does with jobs, whoever started them."""

import json

from tests.helpers.commands import Command, line_of, rest_of
from tests.helpers.processes import alive, eventually

# Many commands, and each is a start of its own.

TALKING = """
import os, sys, time
print("first", flush=True)
print("problem", file=sys.stderr, flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
print("last", flush=True)
"""


def test_a_detached_job_is_followed_from_another_process_to_its_end(run: Command) -> None:
    job = run.ok("run", "--no-uv", "--detach", "-c", TALKING, "go on").strip()
    with run.running("jobs", "logs", "-f", job[:8]) as follower:
        assert line_of(follower.stdout) == "first\n"
        assert line_of(follower.stderr) == "problem\n"
        (run.directory / "go on").touch()
        assert rest_of(follower.stdout) == "last\n"
    assert follower.returncode == 0
    again = run("jobs", "logs", job)
    assert (again.status, again.stdout, again.stderr) == (0, "first\nlast\n", "problem\n")


def test_new_work_is_refused_in_a_sentence_when_there_is_no_room_and_what_ran_stays_readable(run: Command) -> None:
    full = run("run", "--no-uv", "-c", "pass", env={"PYEXEC_FREE_DISK_MB": "999999999"})
    assert (full.status, full.stdout) == (1, "")
    assert f"The disk of the state folder {run.home} has" in full.stderr
    job = run.ok("run", "--no-uv", "-d", "-c", TALKING, "never").strip()
    waiting = run("run", "--no-uv", "-c", "pass", env={"PYEXEC_QUEUED": "1"})
    assert "1 executions are waiting or running; at most 1 may." in waiting.stderr
    assert run.ok("jobs", "cancel", "--kill", job) == f"{job} cancelled\n"


def test_a_job_tells_how_far_it_has_come(run: Command) -> None:
    run.ok("run", "--no-uv", "-c", "print('::progress 3/10 reading files')")
    (row,) = json.loads(run.ok("jobs", "list", "--limit", "1", "--json"))["jobs"]
    assert "\nprogress     3 of 10: reading files\n" in run.ok("jobs", "show", row["id"])
    record = json.loads(run.ok("jobs", "show", row["id"], "--json"))
    assert record["progress"] == {"current": 3, "total": 10, "message": "reading files"}


def test_jobs_are_listed_shown_cancelled_and_pruned_in_words_and_in_json(run: Command) -> None:
    started = json.loads(run.ok("run", "--no-uv", "-d", "--json", "--label", "talk", "-c", TALKING, "never"))
    job = started["id"]
    assert (started["state"], started["label"]) == ("pending", "talk")
    eventually(lambda: run.ok("jobs", "logs", job) == "first\n")

    listed = run.ok("jobs", "list", "--status", "running").splitlines()
    assert listed[0].split() == ["JOB", "STATUS", "STARTED", "SECONDS", "WHAT"]
    assert listed[1].startswith(f"{job[:12]}  running")
    assert listed[1].endswith("  talk")
    found = json.loads(run.ok("jobs", "list", "--status", "running", "--json"))
    assert (found["total"], [row["id"] for row in found["jobs"]]) == (1, [job])

    shown = run.ok("jobs", "show", job[:12])
    for part in (job, "talk", "running", "inline", str(run.directory)):
        assert part in shown
    record = json.loads(run.ok("jobs", "show", job, "--json"))
    assert alive(record["pid"])
    assert "owner" not in record

    ended = json.loads(run.ok("jobs", "cancel", job[:6], "--json"))
    assert (ended["id"], ended["state"], ended["outcome"]["signal"]) == (job, "cancelled", "SIGINT")
    eventually(lambda: not alive(record["pid"]))
    assert run.ok("jobs", "cancel", job) == f"{job} cancelled\n", "once more is no failure"

    assert json.loads(run.ok("jobs", "prune", "--json"))["removed"] == 0
    assert run.ok("jobs", "prune", "--max-age-hours", "0").endswith("; 0 remain.\n")
    assert run("jobs", "logs", job).status == 1
    assert run("jobs", "list").stderr == "No jobs.\n"
