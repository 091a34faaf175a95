"""Environments as a client sees them: named, listed, locked, removed, and watched while they are made."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.homes import UV
from tests.helpers.mcp import Mcp
from tests.helpers.waiting import eventually

pytestmark = pytest.mark.needs_uv

PATIENT = {"wait_seconds": 100}
SHOW = "import importlib.metadata as m, sys; print(m.version('six'), sys.prefix)"
BACKEND = """
import os, zipfile
def build_wheel(folder, config=None, metadata=None):
    open(os.environ["BUILDING"]).read()  # Goes on when somebody writes into this pipe.
    with zipfile.ZipFile(os.path.join(folder, "slow-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("slow.py", "")
        wheel.writestr("slow-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: slow\\nVersion: 1\\n")
        wheel.writestr("slow-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("slow-1.dist-info/RECORD", "")
    return "slow-1-py3-none-any.whl"
"""
PROJECT = """
[project]
name = "slow"
version = "1"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


async def named(mcp: Mcp, name: str) -> dict[str, object]:
    (row,) = [row for row in (await mcp.get("list_environments"))["environments"] if name in row["names"]]
    return row


async def test_a_named_environment_serves_any_run_until_it_is_removed(mcp: Mcp) -> None:
    made = await mcp.call("create_environment", name="tools", dependencies=["six<1.17"], **PATIENT)
    assert (made.data["name"], made.data["status"], made.data["packages"]) == ("tools", "completed", ["six==1.16.0"])
    assert "`environment='tools'`" in made.text
    first = await mcp.run(SHOW, use_uv=True, environment="tools")
    second = await mcp.get("run_script_with_dependencies", script_content=SHOW, environment="tools")
    assert first["stdout"] == second["stdout"]
    assert first["stdout"].startswith("1.16.0 ")
    assert second["resolved_dependencies"] == ["six==1.16.0"]
    assert second["environment_id"] == made.data["environment_id"]
    row = await named(mcp, "tools")
    assert (row["id"], row["packages"], row["in_use"]) == (made.data["environment_id"], ["six==1.16.0"], False)
    assert (await mcp.get("remove_environment", environment="tools"))["names"] == ["tools"]
    refusal = await mcp.refused("run_script_with_dependencies", script_content=SHOW, environment="tools")
    assert refusal["error_code"] == "not_found"
    assert "'tools'" in refusal["error"]
    assert not Path(second["stdout"].split()[1]).exists()


async def test_an_environment_in_use_is_not_removed(mcp: Mcp) -> None:
    await mcp.get("create_environment", name="busy", dependencies=["six<1.17"], **PATIENT)
    job_id = await mcp.start("import time; print('up', flush=True); time.sleep(300)", use_uv=True, environment="busy")
    await mcp.printed(job_id, "up")
    assert (await named(mcp, "busy"))["in_use"] is True
    refusal = await mcp.refused("remove_environment", environment="busy")
    assert refusal["error_code"] == "environment_in_use"
    assert job_id in refusal["error"]
    await mcp.get("kill_job", job_id=job_id)
    await mcp.get("remove_environment", environment="busy")


async def test_a_lock_makes_the_same_environment_elsewhere(mcp: Mcp, tmp_path: Path) -> None:
    made = await mcp.get("create_environment", name="locked", dependencies=["six<1.17", "idna"], **PATIENT)
    locked = await mcp.get("lock_environment", environment="locked")
    assert locked["lock"].count("--hash=sha256:") >= 2
    assert locked["python_version"] in locked["usage"]
    (tmp_path / "requirements.lock").write_text(locked["lock"])
    for command in (
        ["venv", "--quiet", "--no-project", "--python", sys.executable, "there"],
        ["pip", "sync", "--quiet", "--require-hashes", "--python", "there/bin/python", "requirements.lock"],
    ):
        subprocess.run([UV, *command], cwd=tmp_path, check=True)
    frozen = subprocess.run(
        [UV, "pip", "freeze", "--python", "there/bin/python"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert frozen.stdout.split() == made["packages"]


async def test_a_build_is_watched_step_by_step_and_a_full_one_is_not_waited_for(mcp: Mcp, tmp_path: Path) -> None:
    project = tmp_path / "slow"
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "backend.py").write_text(BACKEND)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    given = {"script_content": "import slow; print('ran')", "dependencies": [str(project)]}
    started = await mcp.get(
        "run_script_with_dependencies", **given, env_vars={"BUILDING": str(pipe)}, async_mode=True, timeout_seconds=30
    )
    assert (started["status"], started.get("resolved_dependencies")) == ("pending", None)

    async def building() -> bool:
        progress = (await mcp.job(started["job_id"]))["progress"]
        return progress is not None and progress["message"] == "building slow"

    await eventually(building)
    pipe.write_text("go on")
    ended = await mcp.finished(started["job_id"])
    assert (ended["state"], ended["stdout"], ended["stderr"]) == ("completed", "ran\n", "")
    log = (mcp.home / "executions" / started["job_id"] / "events").read_text()
    events = [json.loads(line) for line in log.splitlines()]
    (environment,) = [event for event in events if event["k"] == "environment"]
    assert environment["packages"] == [f"slow @ file://{project}"]
    # The second time there is nothing to build.
    again = await mcp.get("run_script_with_dependencies", **given, env_vars={"BUILDING": "/nowhere"}, **PATIENT)
    assert (again["stdout"], again["resolved_dependencies"]) == ("ran\n", [f"slow @ file://{project}"])
    assert sorted(path.name for path in project.iterdir()) == ["backend.py", "pyproject.toml"]


async def test_progress_says_what_is_done_while_a_client_waits(mcp: Mcp) -> None:
    await mcp.get("create_environment", name="watched", dependencies=["colorama", "six"], **PATIENT)
    said = " ".join(mcp.progress)
    assert any(step in said for step in ("resolving 2 requirements", "installing", "compiling", "ready")), said
    await mcp.get("remove_environment", environment="watched")


async def test_an_environment_that_cannot_be_made_leaves_no_name(mcp: Mcp) -> None:
    answer = await mcp.call("create_environment", name="never", dependencies=["six==0.0.0.1"], **PATIENT)
    assert answer.is_error
    assert (answer.data["status"], answer.data.get("packages")) == ("failed", None)
    assert "six==0.0.0.1" in answer.data["error"]
    refusal = await mcp.refused("remove_environment", environment="never")
    assert refusal["error_code"] == "not_found"


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("create_environment", {"name": "No Such Name"}, "cannot be called 'No Such Name'; allowed are"),
        ("create_environment", {"name": "../up"}, "cannot be called '../up'"),
        ("create_environment", {"name": "x", "dependencies": ["six", "--index-url"]}, "is an option for the installer"),
        ("create_environment", {"name": "x", "index_url": "ftp://me:secret@host"}, "index_url is 'ftp://***@host'"),
        ("create_environment", {"name": "x", "constraints": ["six=1"]}, "'six=1' in constraints cannot be read"),
        (
            "run_script_with_dependencies",
            {"environment": "base", "dependencies": ["six"]},
            "Both environment='base' and",
        ),
        (
            "run_script_with_dependencies",
            {"environment": "base", "python_version": "3.8"},
            "python_version asks for '3.8'",
        ),
        (
            "run_script_with_dependencies",
            {"environment": "base", "script_content": "# /// script\n# dependencies = ['idna>3', 'six']\n# ///\n"},
            "lacks what the script's header asks for: 'idna>3' (not there)",
        ),
        ("run_script_in_dir", {"environment": "base", "use_uv": False}, "environment needs use_uv=true"),
    ],
)
async def test_wrong_input_is_refused_with_what_is_allowed(
    mcp: Mcp, tool: str, given: dict[str, object], said: str
) -> None:
    if given.get("environment"):
        await mcp.get("create_environment", name="base", dependencies=["six<1.17"], **PATIENT)
    script = {} if tool == "create_environment" else {"script_content": "print()"}
    directory = {"directory": str(mcp.directory)} if tool == "run_script_in_dir" else {}
    refusal = await mcp.refused(tool, **{**directory, **script, **given})
    assert refusal["error_code"] == "invalid_argument"
    assert said in refusal["error"]
    assert "secret" not in refusal["error"]


async def test_a_missing_module_is_named_by_its_distribution_and_never_installed(mcp: Mcp) -> None:
    result = await mcp.run("import cv2", use_uv=True, python_version=sys.executable)
    assert result["status"] == "failed"
    assert result["advice"] == "The module 'cv2' comes in the distribution 'opencv-python'; add it to dependencies."
