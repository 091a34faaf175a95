"""The examples of the requirements that use the tools for scripts and jobs, as they are written there.

Only folders differ: the examples name some that a test has no business in.
"""

import os
from typing import Any

import pytest

from pyexec.domain.errors import InterpreterNotFoundError
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.processes.probe import python_version
from tests.helpers import eventually
from tests.helpers.mcp import Mcp

pytestmark = pytest.mark.needs_uv

NUMPY_JOB = """
import time
import numpy as np
for number in range(1, 11):
    print(f"{np.sqrt(number):.4f}", flush=True)
    time.sleep(0.3)
"""
LONG_TASK = """
import os, time
print("step 1", flush=True)
while not os.path.exists("go on"): time.sleep(0.02)
print("step 2")
"""
ENV_FILE = """
# A comment, and a blank line

PLAIN=plain value
DOUBLE="double \\"quoted\\"\\tvalue"
SINGLE='single $quoted value'
MULTI="line one
line two"
EXPANDED=${PLAIN}!
"""


@pytest.fixture(scope="module")
async def python_3_13() -> str:
    """The version that the examples name. Where it is missing uv fetches it, which not every network lets happen."""
    try:
        InterpreterFinder(os.environ, None, python_version).find("3.13")
    except InterpreterNotFoundError:
        pytest.skip("there is no Python 3.13 here")
    return "3.13"


@pytest.mark.requirement("3.1")
async def test_a_script_of_a_project_with_a_python_version_and_a_time_out(mcp: Mcp, python_3_13: str) -> None:
    (mcp.directory / "main.py").write_text("import sys; print('main', sys.version_info[:2])")
    result = await mcp.get(
        "run_script_in_dir",
        directory=str(mcp.directory),
        script_path="main.py",
        use_uv=True,
        python_version=python_3_13,
        timeout_seconds=300,
        wait_seconds=100,
    )
    assert (result["stdout"], result["execution_strategy"]) == ("main (3, 13)\n", "uv-run")


@pytest.mark.requirement("3.2")
async def test_inline_code_without_uv(mcp: Mcp) -> None:
    result = await mcp.get("run_script_in_dir", directory="/tmp", script_content="print('Hello world')", use_uv=False)
    assert (result["stdout"], result["exit_code"]) == ("Hello world\n", 0)
    assert result["execution_strategy"] == "system-python"


@pytest.mark.requirement("3.3")
async def test_inline_code_with_a_dependency(mcp: Mcp, python_3_13: str) -> None:
    result = await mcp.get(
        "run_script_with_dependencies",
        script_content="import requests; print(requests.__version__)",
        python_version=python_3_13,
        dependencies=["requests"],
        wait_seconds=100,
    )
    version = result["stdout"].strip()
    assert f"requests=={version}" in result["resolved_dependencies"]
    assert len(result["resolved_dependencies"]) > 1, "what it needs itself is named too"
    assert result["python_version_used"].startswith("3.13.")
    assert result["execution_strategy"] == "uv-run"


@pytest.mark.requirement("3.4")
async def test_a_benchmark(mcp: Mcp, python_3_13: str) -> None:
    result = await mcp.get(
        "benchmark_script",
        script_content="print(sum(i*i for i in range(500000)))",
        python_version=python_3_13,
        dependencies=[],
    )
    assert (result["stdout"], result["exit_code"]) == ("41666541666750000\n", 0)
    assert result["python_version_used"].startswith("3.13.")
    assert all(result[name] > 0 for name in ("wall_time_seconds", "cpu_time_seconds", "peak_rss_mb"))


@pytest.mark.requirement("3.5")
async def test_a_long_task_is_started_read_meanwhile_and_at_the_end(mcp: Mcp) -> None:
    (mcp.directory / "long_task.py").write_text(LONG_TASK)
    start = await mcp.get(
        "run_script_in_dir_async", directory=str(mcp.directory), script_path="long_task.py", stream=True
    )
    assert (start["status"], start["execution_strategy"]) == ("started", "uv-run")
    job_id = start["job_id"]

    async def begun() -> bool:
        return "step 1" in await mcp.stream(job_id)

    await eventually(begun)
    assert (await mcp.output(job_id))["status"] == "running"
    running = (await mcp.get("list_running_jobs"))["result"]
    assert {job["job_id"]: job["stream"] for job in running}[job_id] is True
    (mcp.directory / "go on").touch()
    await mcp.finished(job_id)
    end = await mcp.output(job_id)
    assert (end["status"], end["stdout"], end["exit_code"]) == ("finished", "step 1\nstep 2\n", 0)


@pytest.mark.requirement("3.6")
async def test_a_job_with_dependencies_is_started(mcp: Mcp, python_3_13: str) -> None:
    start = await mcp.get(
        "run_script_with_dependencies_async",
        script_content="import time; [print(i) or time.sleep(0.2) for i in range(5)]",
        python_version=python_3_13,
        dependencies=[],
    )
    assert start["status"] == "started"
    assert start["python_version_used"].startswith("3.13")
    assert start["resolved_dependencies"] == []
    end = await mcp.finished(start["job_id"])
    assert (end["stdout"], end["exit_code"]) == ("0\n1\n2\n3\n4\n", 0)


async def test_what_is_asked_for_is_told_at_once_and_what_came_of_it_later(mcp: Mcp) -> None:
    start = await mcp.get(
        "run_script_with_dependencies_async", script_content="import iniconfig", dependencies=["iniconfig>=2"]
    )
    assert start["resolved_dependencies"][0].startswith("iniconfig")
    end = await mcp.finished(start["job_id"])
    assert end["resolved_dependencies"][0].startswith("iniconfig==")


@pytest.mark.requirement("3.7")
async def test_a_variable_of_the_call_wins_over_the_env_file(mcp: Mcp) -> None:
    (mcp.directory.parent / ".env").write_text("MY_VAR=from_file\n")  # Where the server was started.
    given: dict[str, Any] = {"script_content": "import os; print(os.getenv('MY_VAR'))", "env_file": ".env"}
    result = await mcp.get("run_script_with_dependencies", **given, env_vars={"MY_VAR": "from_dict"})
    assert result["stdout"] == "from_dict\n"
    assert (await mcp.get("run_script_with_dependencies", **given))["stdout"] == "from_file\n"


@pytest.mark.requirement("3.8")
async def test_a_job_with_numpy_is_polled_until_it_has_finished(mcp: Mcp) -> None:
    start = await mcp.get(
        "run_script_with_dependencies", script_content=NUMPY_JOB, dependencies=["numpy"], async_mode=True
    )
    assert start["status"] == "pending"
    job_id = start["job_id"]
    streamed: list[str] = []

    async def poll() -> dict[str, Any] | None:
        streamed.append(await mcp.stream(job_id))
        output = await mcp.output(job_id)
        return output if output["status"] == "finished" else None

    final = await eventually(poll)
    assert final is not None
    roots = "".join(f"{number**0.5:.4f}\n" for number in range(1, 11))
    assert (final["stdout"], final["exit_code"]) == (roots, 0)
    assert any("1.0000" in text and "3.1623" not in text for text in streamed), "seen while it ran"
    assert await mcp.stream(job_id) == f"---STDOUT---\n{roots}\n---STDERR---\n"


@pytest.mark.requirement("3.9")
async def test_jobs_are_listed_cancelled_killed_and_pruned(mcp: Mcp) -> None:
    source = "print('working', flush=True); import time; time.sleep(300)"
    one, other = await mcp.start(source), await mcp.start(source)
    for job_id in (one, other):
        await mcp.printed(job_id, "working")
    assert (await mcp.job(one))["status"] == "running"
    listed = await mcp.get("py_list_jobs", status_filter="running", limit=50)
    assert [job["id"] for job in listed["jobs"]] == [other, one]
    assert (await mcp.get("py_cancel_job", job_id=one))["status"] == "cancelled"
    assert (await mcp.get("kill_job", job_id=other))["status"] == "killed"
    pruned = await mcp.get("py_prune_jobs", keep_completed=False, max_age_hours=24)
    assert pruned["removed"] == 0, "all of this is younger than a day"
    assert pruned["remaining"] >= 2


@pytest.mark.requirement("3.10")
async def test_an_env_file_has_comments_quotes_and_values_over_several_lines(mcp: Mcp) -> None:
    (mcp.directory / "many.env").write_text(ENV_FILE)
    names = ["PLAIN", "DOUBLE", "SINGLE", "MULTI", "EXPANDED"]
    source = f"import os, json; print(json.dumps([os.environ[name] for name in {names}]))"
    result = await mcp.run(source, env_file="many.env")
    assert result["stdout"] == (
        '["plain value", "double \\"quoted\\"\\tvalue", "single $quoted value", "line one\\nline two", '
        '"plain value!"]\n'
    )
