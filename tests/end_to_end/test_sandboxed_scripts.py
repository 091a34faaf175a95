"""Scripts and named environments behind the bubblewrap wall, as a client asks for them."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.mcp import Mcp
from tests.helpers.waiting import with_enough_time
from tests.walls.bubblewrap import SERVER

SERVER_ENV = {
    **SERVER,
    "PYEXEC_TOOLSETS": "core,environments,execute,sessions",
    "PYEXEC_SANDBOX_READY": "1",
}

pytestmark = [pytest.mark.needs_uv, pytest.mark.root, pytest.mark.usefixtures("environments")]

SCRIPT = """
import os, signal, socket, sys
import helper

def tried(attempt):
    try:
        return repr(attempt())
    except OSError as error:
        return f"{type(error).__name__}: {error.strerror}"

print(helper.VALUE, sys.argv[1:], open("data.csv").read(), os.getuid())
print(tried(lambda: open("/code/new", "w")))
print(tried(lambda: open("data.csv", "a")))
print(tried(lambda: os.unlink("/code/data.csv")))
print(tried(lambda: socket.create_connection(("127.0.0.1", 80), 1)))
print(tried(lambda: socket.create_connection(("169.254.169.254", 80), 1)))
print(tried(lambda: socket.getaddrinfo("pypi.org", 443)).partition(":")[0])
print(sorted(int(name) for name in os.listdir("/proc") if name.isdigit()) == sorted({1, os.getpid()}))
print(tried(lambda: os.kill(int(sys.argv[1]), 0)), os.path.exists(sys.argv[2]))
open("written.txt", "w").write("kept")
"""
SEEN = """\
helped {args} x,y 1000
OSError: Read-only file system
PermissionError: Permission denied
OSError: Read-only file system
OSError: Network is unreachable
OSError: Network is unreachable
gaierror
True
ProcessLookupError: No such process False
"""


@pytest.fixture
def project(mcp: Mcp) -> Path:
    """A folder with a script and what it reads, beside a file that is none of its business."""
    folder = mcp.directory / "project"
    folder.mkdir()
    (folder / "helper.py").write_text("VALUE = 'helped'")
    (folder / "data.csv").write_text("x,y")
    (folder / "main.py").write_text(SCRIPT.lstrip())
    (mcp.directory / "secret").write_text("s3cr3t")
    return folder


def arguments(project: Path) -> list[str]:
    return [str(os.getpid()), str(project.parent / "secret")]


def check_untouched(project: Path) -> None:
    assert sorted(os.listdir(project)) == ["data.csv", "helper.py", "main.py"]
    assert (project / "data.csv").read_text() == "x,y"


async def test_a_script_reads_its_directory_and_nothing_else(mcp: Mcp, project: Path) -> None:
    given: dict[str, Any] = {"directory": str(project), "script_path": "main.py", "args": arguments(project)}
    ran = await mcp.get("run_script_in_dir", **given, sandboxed=True, wait_seconds=250)
    assert ran["stdout"] == SEEN.format(args=arguments(project))
    assert (ran["status"], ran["exit_code"]) == ("completed", 0)
    assert any(f"job-file://{ran['job_id']}/" in note for note in ran["notes"])
    (kept,) = await mcp.client.read_resource(f"job-file://{ran['job_id']}/written.txt")
    assert "kept" in str(kept)
    check_untouched(project)


async def test_so_does_one_that_nobody_waits_for(mcp: Mcp, project: Path) -> None:
    given: dict[str, Any] = {"directory": str(project), "script_path": "main.py", "args": arguments(project)}
    started = await mcp.get("run_script_in_dir_async", **given, sandboxed=True)
    output = await mcp.finished(started["job_id"])
    assert (output["stdout"], output["exit_code"]) == (SEEN.format(args=arguments(project)), 0)
    check_untouched(project)


async def test_packages_are_resolved_outside_and_imported_inside(mcp: Mcp, project: Path) -> None:
    """Those of the call and those of the script's header; of the machine it sees the folder of its script."""
    with_header = project / "main.py"
    header = "# /// script\n# requires-python = '>=3.12'\n# dependencies = ['toolz']\n# ///\n"
    more = "import iniconfig, toolz\nprint(iniconfig.__file__, toolz.identity(5))\n"
    with_header.write_text(header + SCRIPT + more)
    given: dict[str, Any] = {
        "script_path": str(with_header),
        "args": arguments(project),
        "dependencies": ["iniconfig==2.0.0", "numpy>=2"],
        "sandboxed": True,
    }
    ran = await mcp.get("run_script_with_dependencies", **given, wait_seconds=250)
    expected = SEEN.format(args=arguments(project)) + "/packages/iniconfig/__init__.py 5\n"
    assert (ran["stdout"], ran["exit_code"]) == (expected, 0), ran
    names = {one.partition("==")[0] for one in ran["resolved_dependencies"]}
    assert {"iniconfig", "toolz", "numpy", "pandas"} <= names
    started = await mcp.get("run_script_with_dependencies_async", **given)
    assert (await mcp.finished(started["job_id"]))["stdout"] == expected
    check_untouched(project)


async def test_code_with_packages_sees_no_folder_of_the_machine(mcp: Mcp) -> None:
    code = "import iniconfig, os, sys\nprint(os.listdir('/code'), os.getcwd(), os.listdir(), sys.argv, _)"
    ran = await mcp.call(
        "run_script_with_dependencies",
        script_content=f"5\n_ = iniconfig = 3\n{code}\nraise SystemExit(4)",
        args=["a"],
        dependencies=["iniconfig"],
        sandboxed=True,
        wait_seconds=250,
    )
    assert (ran.data["stdout"], ran.data["exit_code"]) == ("[] /work [] ['-c', 'a'] 3\n", 4)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"dependencies": ["numpy<2"]}, "sandboxes have numpy"),
        ({"dependencies": ["./x"]}, "is a path on this machine"),
        ({"dependencies": ["six"], "constraints": ["six<1.17"]}, "constraints was given"),
        ({"dependencies": ["six"], "index_url": "https://127.0.0.1:9/simple"}, "index_url was given"),
        ({"env_file": ".env"}, "env_file was given"),
        ({"script_content": "# /// script\n# requires-python = '<3.12'\n# ///\n"}, "asks for Python '<3.12'"),
    ],
)
async def test_what_cannot_be_had_in_a_sandbox_is_refused(mcp: Mcp, given: dict[str, Any], why: str) -> None:
    refused = await mcp.refused("run_script_with_dependencies", **{"script_content": "1", **given}, sandboxed=True)
    assert why in refused["error"]


async def test_a_script_is_held_to_the_limits_of_sandboxes(mcp: Mcp) -> None:
    code = """
import os, signal
try:
    bytearray(10**9)
except MemoryError:
    print("MemoryError")
born = []
try:
    while len(born) < 200:
        child = os.fork()
        if not child:
            signal.pause()
        born.append(child)
except OSError as error:
    print(type(error).__name__, len(born) < 64)
try:
    kept = [open("/dev/null") for _ in range(1000)]
except OSError as error:
    print(error.strerror)
"""
    given = {"script_content": code, "sandboxed": True, "wait_seconds": 250}
    ran = await mcp.get("run_script_in_dir", directory=str(mcp.directory), **given)
    assert ran["stdout"] == "MemoryError\nBlockingIOError True\nToo many open files\n"
    endless = {
        **given,
        "script_content": "print('begun', flush=True)\nwhile True: pass",
        "directory": str(mcp.directory),
    }
    ended, _seconds = await with_enough_time(
        lambda seconds: mcp.call("run_script_in_dir", **endless, timeout_seconds=seconds),
        lambda answer: answer.data["stdout"],
    )
    assert (ended.data["status"], ended.data["stdout"]) == ("timed_out", "begun\n")


async def test_a_named_environment_is_what_cells_and_sessions_and_scripts_run_on(mcp: Mcp) -> None:
    made = await mcp.get(
        "create_environment", name="bare", python_version=">=3.12,<3.15", dependencies=["six==1.16.0"], wait_seconds=250
    )
    assert made["status"] == "completed"
    code = "import importlib.util as u, six\n[six.__version__, u.find_spec('numpy')]"
    given = {"code": code, "environment": "bare", "wait_seconds": 250}
    ran = await mcp.get("execute_python", **given)
    assert ran["result"] == "['1.16.0', None]"
    assert any("starting an interpreter with this environment" in told for told in mcp.progress)
    mcp.progress.clear()
    assert (await mcp.get("execute_python", **given, session_id="in-bare"))["result"] == "['1.16.0', None]"
    assert not any("starting an interpreter" in told for told in mcp.progress)
    script = {"script_content": "import six; print(six.__version__)", "environment": "bare", "sandboxed": True}
    assert (await mcp.get("run_script_with_dependencies", **script, wait_seconds=250))["stdout"] == "1.16.0\n"
    listed = await mcp.call("list_sessions")
    assert [one["environment"] for one in listed.data["sessions"]] == ["bare"]
    assert "`in-bare` in environment `bare`" in listed.text
    looked = await mcp.call("session_info", session_id="in-bare")
    assert looked.data["session"]["environment"] == "bare"
    assert "in environment `bare`" in looked.text
    other = await mcp.refused("execute_python", code="1", session_id="in-bare", environment="other")
    assert other["error"].startswith("environment is 'other', and session 'in-bare' was made with 'bare'.")
    unknown = await mcp.refused("execute_python", code="1", environment="nothing")
    assert unknown["error_code"] == "not_found"
    await mcp.get("close_session", session_id="in-bare")
