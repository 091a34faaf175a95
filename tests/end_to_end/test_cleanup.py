"""Cleaning up, by the tool and by the command."""

import json

from tests.helpers.commands import Command
from tests.helpers.mcp import Mcp

SERVER_ENV: dict[str, str] = {}


async def test_a_dry_run_says_what_goes_and_what_runs_is_never_touched(mcp: Mcp) -> None:
    running = await mcp.start("import time; print('up', flush=True); time.sleep(300)")
    await mcp.printed(running, "up")
    over = (await mcp.run("print('x' * 10_000)"))["job_id"]
    said = await mcp.call("cleanup_jobs", max_age_hours=0, dry_run=True)
    jobs, *_others, temporary = said.data["removed"]
    assert (said.data["dry_run"], jobs["kind"], jobs["count"]) == (True, "jobs", 1)
    assert 10_000 < jobs["bytes"] <= said.data["freed_bytes"]
    assert (temporary["kind"], temporary["count"]) == ("temporary_files", 0)
    assert said.text.startswith(f"Would remove, {said.data['freed_bytes']} bytes in all:")
    assert await mcp.total_jobs() == 2
    assert (await mcp.get("cleanup_jobs"))["freed_bytes"] == 0  # Nothing is a day old.
    assert await mcp.get("cleanup_jobs", max_age_hours=0) == {**said.data, "dry_run": False}
    assert not (mcp.home / "executions" / over).exists()
    assert (await mcp.job(running))["status"] == "running"
    await mcp.get("kill_job", job_id=running)
    refused = await mcp.refused("cleanup_jobs", max_age_hours=-1)
    assert refused["error_code"] == "invalid_argument"


def test_the_command_says_what_it_freed_by_kind(run: Command) -> None:
    run.ok("run", "--no-uv", "-c", "pass")
    dry = run.ok("jobs", "cleanup", "--max-age-hours", "0", "--dry-run").splitlines()
    assert dry[0].split()[:2] == ["jobs", "1"]
    assert dry[-1] == "Nothing was removed: a dry run."
    said = json.loads(run.ok("jobs", "cleanup", "--max-age-hours", "0", "--json"))
    counts = {row["kind"]: row["count"] for row in said["removed"]}
    assert (counts["jobs"], counts["temporary_files"]) == (1, 0)
    assert json.loads(run.ok("jobs", "list", "--json"))["total"] == 0
