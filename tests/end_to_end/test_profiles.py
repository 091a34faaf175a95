"""Profiles, with the real tools in the environments of real programs."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_types import TextResourceContents

from tests.helpers.commands import Command
from tests.helpers.mcp import Mcp
from tests.helpers.waiting import with_enough_time

pytestmark = [pytest.mark.needs_uv, pytest.mark.usefixtures("kept_environments")]

SERVER_ENV: dict[str, str] = {}
# Small packages, of which memray brings along another version of the first.
PACKAGES = ["markupsafe==2.1.5", "iniconfig"]
KNOWN = """\
def hot(number):
    total = 0
    for each in range(number):
        total += each * each
    return total
def hoard():
    kept = []
    for _ in range(30):
        kept.append(bytes(1_000_000))
    return kept
def main():
    kept = hoard()
    for _ in range(40): hot(40_000)
main()
print("done")
"""
FAILS = """\
import sys
def inner(): raise ValueError("mine")
def outer(): inner()
sum([number * number for number in range(1_000_000)])
if len(sys.argv) > 1: sys.exit(int(sys.argv[1]))
outer()
"""
SEES = """\
import importlib.metadata, importlib.util, markupsafe, sys
print(markupsafe.__version__ if hasattr(markupsafe, "__version__") else importlib.metadata.version("markupsafe"))
print([name for name in ("jinja2", "memray", "pyinstrument", "rich", "textual") if importlib.util.find_spec(name)])
print(any("environments" in path and sys.prefix not in path for path in sys.path))
"""
SPINS = """\
import time
def spin():
    while True: time.sleep(0.001)
print("spinning", flush=True)
spin()
"""


async def profiled(mcp: Mcp, source: str, /, **arguments: Any) -> dict[str, Any]:
    given = {"directory": str(mcp.directory), "script_content": source, **arguments}
    answer = await mcp.call("profile_script", **given)
    assert "job_id" in answer.data, answer.text
    return answer.data


async def page(mcp: Mcp, uri: str) -> str:
    (content,) = await mcp.client.read_resource(uri)
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "text/html"
    return content.text


def listing(folder: Path) -> dict[str, tuple[int, str]]:
    """Return what a folder holds, byte for byte, and when each file was written."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.parametrize(
    ("mode", "unit", "hottest"), [("time", "seconds", "hot"), ("calls", "seconds", "hot"), ("memory", "bytes", "hoard")]
)
async def test_what_takes_most_is_on_top(mcp: Mcp, mode: str, unit: str, hottest: str) -> None:
    (mcp.directory / "known.py").write_text(KNOWN)
    given = {"directory": str(mcp.directory), "script_path": "known.py", "mode": mode, "top": 3}
    answer = await mcp.call("profile_script", **given)
    data = answer.data
    assert (data["status"], data["exit_code"], data["stdout"], data["stderr"]) == ("completed", 0, "done\n", "")
    assert (data["mode"], data["unit"], len(data["rows"])) == (mode, unit, 3)
    first = data["rows"][0]
    assert (first["function"], first["file"]) == (hottest, "known.py")
    assert data["total"] >= first["total"] >= first["own"] >= 0.5 * data["total"]
    assert first.get("count") == {"time": None, "calls": 40, "memory": 30}[mode]
    assert f"{hottest}  known.py:{first['line']}" in data["text"]
    for shown in (f"| {hottest} | known.py:{first['line']} |", data["text"], data["overhead"]):
        assert shown in answer.text
    (uri,) = [uri for uri in data["artifacts"] if uri.endswith("flamegraph.html")]
    head, graph, rest = re.split(r'(<script type="application/json".*?</script>)', await page(mcp, uri))
    assert hottest in graph
    # Nothing that a browser would load, wherever it is.
    assert not re.search(r"(src|href)\s*=|url\(|@import|//", head + rest)


@pytest.mark.parametrize("mode", ["time", "memory"])
async def test_a_failure_is_the_programs_own(mcp: Mcp, mode: str) -> None:
    (mcp.directory / "fails.py").write_text(FAILS)
    script = {"directory": str(mcp.directory), "script_path": "fails.py", "use_uv": False}
    plain = (await mcp.call("run_script_in_dir", **script)).data
    measured = (await mcp.call("profile_script", mode=mode, **script)).data
    for name in ("status", "exit_code", "stdout", "stderr", "error"):
        assert measured[name] == plain[name]
    assert "profiler" not in measured["stderr"]
    assert measured["rows"]
    left = (await mcp.call("profile_script", mode=mode, args=["5"], **script)).data
    assert (left["exit_code"], left["status"]) == (5, "failed")


async def test_the_programs_environment_stays_as_it_is_and_its_packages_come_first(mcp: Mcp) -> None:
    arguments = {"script_content": SEES, "dependencies": PACKAGES}
    plain = await mcp.get("run_script_with_dependencies", **arguments)
    assert plain["stdout"].startswith("2.1.5\n[]\n")
    folder = mcp.home / "environments" / plain["environment_id"]
    before = listing(folder)
    assert len(before) > 10
    for mode in ("memory", "time"):
        measured = await mcp.get("profile_script", mode=mode, **arguments)
        assert measured["stdout"] == plain["stdout"]
        assert measured["environment_id"] == plain["environment_id"]
        assert measured["resolved_dependencies"] == plain["resolved_dependencies"]
        assert measured["rows"]
    assert listing(folder) == before


async def test_a_projects_own_environment_is_used_as_it_is(mcp: Mcp) -> None:
    venv = mcp.directory / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "typing_extensions.py").write_text("raise ImportError('not for the tool')\n")
    (site / "rich.py").write_text("MINE = 'mine'\n")
    (mcp.directory / "main.py").write_text("import rich, sys; print(rich.MINE, sys.prefix)\n" + KNOWN)
    before = listing(venv)
    given = {"directory": str(mcp.directory), "script_path": "main.py", "mode": "memory"}
    measured = await mcp.get("profile_script", **given)
    assert measured["stdout"] == f"mine {venv}\ndone\n"
    assert measured["rows"][0]["function"] == "hoard"
    assert {name for name in listing(venv).keys() - before.keys() if "__pycache__/rich." not in name} == set()
    assert before.items() <= listing(venv).items()


async def test_environments_of_program_and_tool_are_made_together(mcp: Mcp) -> None:
    source = "import iniconfig; print(iniconfig.__name__)"
    measured = await profiled(mcp, source, mode="time", dependencies=["iniconfig", "markupsafe==2.1.4"])
    assert measured["stdout"] == "iniconfig\n", measured
    assert "markupsafe==2.1.4" in measured["resolved_dependencies"]
    assert measured["rows"]


async def test_a_time_out_keeps_what_was_measured(mcp: Mcp) -> None:
    measured, _seconds = await with_enough_time(
        lambda seconds: profiled(mcp, SPINS, timeout_seconds=seconds), lambda measured: measured.get("rows"), times=2
    )
    assert measured["status"] == "timed_out"
    assert "spin" in [row["function"] for row in measured["rows"]]


async def test_a_job_that_is_cancelled_shows_its_profile_afterwards(mcp: Mcp) -> None:
    started = await mcp.call("profile_script", script_content=SPINS, async_mode=True)
    assert "rows" not in started.data
    job_id = started.data["job_id"]
    assert (await mcp.job(job_id))["kind"] == "profile"
    await mcp.printed(job_id, "spinning")
    running = await mcp.call("profile_script", job_id=job_id, wait_seconds=0)
    assert running.data["status"] == "running"
    assert "profile_script(job_id)" in running.text
    await mcp.get("py_cancel_job", job_id=job_id)
    measured = (await mcp.call("profile_script", job_id=job_id)).data
    assert (measured["status"], measured["mode"]) == ("cancelled", "time")
    assert "spin" in [row["function"] for row in measured["rows"]]


@pytest.mark.parametrize("source", ["import os; os._exit(4)", "x = ("], ids=["os-exit", "syntax-error"])
async def test_where_there_is_no_profile_the_reason_is_said(mcp: Mcp, source: str) -> None:
    measured = await profiled(mcp, source, mode="calls")
    assert measured["exit_code"] in (1, 4)
    assert "rows" not in measured
    assert any(note.startswith("There is no profile: ") for note in measured["notes"])


async def test_a_tool_that_cannot_be_had_says_where_it_can(mcp: Mcp) -> None:
    # As of then, there was none.
    measured = await profiled(mcp, "print('ran')", mode="memory", env_vars={"UV_EXCLUDE_NEWER": "2015-01-01"})
    assert (measured["status"], measured["exit_code"], measured["stdout"]) == ("failed", None, "")
    assert "memray could not be installed beside the program" in measured["error"]
    assert "CPython from 3.8 on, on Linux and macOS" in measured["error"]


async def test_wrong_arguments_are_refused(mcp: Mcp) -> None:
    refused = await mcp.refused("profile_script", script_content="1", mode="speed")
    assert "'time', 'calls' or 'memory'" in refused["error"]
    assert "between 1 and 200" in (await mcp.refused("profile_script", script_content="1", top=0))["error"]
    job_id = (await mcp.run("pass"))["job_id"]
    assert "no profile" in (await mcp.refused("profile_script", job_id=job_id))["error"]
    assert (await mcp.refused("profile_script", job_id="nothing"))["error_code"] == "not_found"


def test_the_command_line_shows_it_on_stderr_and_writes_the_flame_graph(run: Command, tmp_path: Path) -> None:
    script, graph = tmp_path / "known.py", tmp_path / "graph.html"
    script.write_text(KNOWN + "raise SystemExit(3)")
    done = run("profile", "--mode", "calls", "--output", str(graph), str(script))
    assert (done.status, done.stdout) == (3, "done\n")
    assert "hot  known.py:1" in done.stderr
    assert f"flame graph: {graph}" in done.stderr
    assert "hot" in graph.read_text("utf-8")
