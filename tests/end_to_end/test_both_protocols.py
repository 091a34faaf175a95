"""The basics, spoken in the newest protocol and in the one with a handshake."""

import re
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path

import anyio
import pytest

from tests.helpers import eventually
from tests.helpers.mcp import Mcp, connect
from tests.helpers.processes import alive

FOR_EVER = """
import os, subprocess, time
print(os.getpid(), subprocess.Popen(["sleep", "300"]).pid, flush=True)
time.sleep(300)
"""
TOOLS = {
    "run_script_in_dir",
    "run_script_with_dependencies",
    "run_script_in_dir_async",
    "run_script_with_dependencies_async",
    "profile_script",
    "list_running_jobs",
    "get_job_output",
    "kill_job",
    "py_job_status",
    "py_list_jobs",
    "py_cancel_job",
    "py_prune_jobs",
    "save_script",
    "run_saved_script",
    "py_list_scripts",
    "py_view_script",
    "delete_script",
    "cleanup_jobs",
    "format_code",
    "analyze_code",
    "list_environments",
    "create_environment",
    "remove_environment",
    "lock_environment",
    "benchmark_script",
}


@pytest.fixture(scope="module", params=["auto", "legacy"])
async def mcp(module_home: Path, request: pytest.FixtureRequest) -> AsyncIterator[Mcp]:
    async with connect(module_home, mode=request.param) as connected:
        yield connected


async def test_the_server_says_who_it_is_and_how_it_is_used(mcp: Mcp) -> None:
    modern = mcp.client.mode == "auto"
    assert mcp.client.protocol_version == ("2026-07-28" if modern else "2025-11-25")
    info = mcp.client.server_info
    assert info is not None
    assert (info.name, info.version) == ("pyexec", version("mcp-pyexec"))
    instructions = mcp.client.instructions or ""
    for word in ("run_script_in_dir", "no sandbox", "job_id", "async_mode"):
        assert word in instructions


@pytest.mark.case("B179")
async def test_the_tools_say_what_they_answer_and_what_to_do_with_long_work(mcp: Mcp) -> None:
    tools = {tool.name: tool for tool in await mcp.client.list_tools()}
    assert tools.keys() == TOOLS
    for tool in tools.values():
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        assert "markdown_output" in tool.input_schema["properties"]
    for text in (tools["run_script_in_dir"].description, mcp.client.instructions):
        assert re.search(r"more\s+than 50 s.*async_mode", text or "", re.DOTALL)


async def test_a_program_runs_fails_and_is_refused(mcp: Mcp) -> None:
    assert (await mcp.run("print('hello')"))["stdout"] == "hello\n"
    failed = await mcp.call("run_script_in_dir", directory="/tmp", script_content="1/0", use_uv=False)
    assert (failed.is_error, failed.data["exit_code"]) == (True, 1)
    refused = await mcp.refused("run_script_in_dir", directory="/not/there", script_content="1/0")
    assert refused["error_code"] == "not_found"


async def test_a_job_is_started_read_and_ended(mcp: Mcp) -> None:
    job_id = await mcp.start("print('working', flush=True); import time; time.sleep(300)")
    await mcp.printed(job_id, "working")
    assert await mcp.stream(job_id) == "---STDOUT---\nworking\n\n---STDERR---\n"
    assert (await mcp.get("py_cancel_job", job_id=job_id))["status"] == "cancelled"


@pytest.mark.case("B131")
async def test_the_first_progress_message_tells_the_job_id(mcp: Mcp) -> None:
    mcp.progress.clear()
    handle = await mcp.run("import time; time.sleep(300)", wait_seconds=0.2)
    assert mcp.progress[0] == f"job {handle['job_id']}"
    await mcp.get("kill_job", job_id=handle["job_id"])


async def test_cancelling_a_call_ends_the_whole_tree_it_started(mcp: Mcp) -> None:
    mcp.progress.clear()
    seen = ""
    async with anyio.create_task_group() as calls:
        calls.start_soon(mcp.run, FOR_EVER)
        await eventually(lambda: mcp.progress)
        seen = (await mcp.printed(job_of(mcp), "\n"))["stdout"]
        calls.cancel_scope.cancel()
    ended = await mcp.finished(job_of(mcp))
    assert (ended["state"], ended["stdout"]) == ("cancelled", seen)
    assert "The client cancelled the call." in ended["error"]
    for pid in map(int, seen.split()):
        await eventually(lambda pid=pid: not alive(pid))


def job_of(mcp: Mcp) -> str:
    """Return the job of the call that has told its progress."""
    return mcp.progress[0].removeprefix("job ")


@pytest.mark.case("B179")
async def test_a_client_that_gives_up_waiting_loses_nothing_it_asked_as_a_job(mcp: Mcp) -> None:
    """Clients give up after a minute, say; what they started as a job they fetch by its id."""
    source = "import os, time\nwhile not os.path.exists('given up'): time.sleep(0.02)\nprint('ok')"
    handle = await mcp.run(source, wait_seconds=0.2)
    assert handle["status"] in ("pending", "running")
    (mcp.directory / "given up").touch()
    assert (await mcp.finished(handle["job_id"]))["stdout"] == "ok\n"
    (mcp.directory / "given up").unlink()
