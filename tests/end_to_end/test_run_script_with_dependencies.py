"""`run_script_with_dependencies`: what is its own, beside what it shares with `run_script_in_dir`."""

import re
import sys

import pytest

from tests.helpers.mcp import Mcp

pytestmark = pytest.mark.needs_uv

PATIENT = {"wait_seconds": 100}
SHOW = "import importlib.metadata as m; print(m.version('six'))"


async def test_the_result_names_the_python_and_the_pinned_packages(mcp: Mcp) -> None:
    version = ".".join(map(str, sys.version_info[:2]))
    result = await mcp.get(
        "run_script_with_dependencies",
        script_content=SHOW,
        dependencies=["six<1.17"],
        python_version=version,
        **PATIENT,
    )
    assert result["resolved_dependencies"] == [f"six=={result['stdout'].strip()}"]
    assert re.fullmatch(rf"{re.escape(version)}\.\d+", result["python_version_used"])
    assert (result["status"], result["exit_code"], result["execution_strategy"]) == ("completed", 0, "uv-run")
    answer = await mcp.call("get_job_output", job_id=result["job_id"])
    assert answer.data["stdout"] == result["stdout"]


async def test_without_packages_the_list_of_them_is_empty(mcp: Mcp) -> None:
    result = await mcp.get("run_script_with_dependencies", script_content="print('none')", dependencies=[])
    assert (result["stdout"], result["resolved_dependencies"]) == ("none\n", [])
    assert result["python_version_used"].startswith("3.")


async def test_the_header_of_a_script_counts_too(mcp: Mcp) -> None:
    (mcp.directory.parent / "headed.py").write_text(f"# /// script\n# dependencies = ['six<1.17']\n# ///\n{SHOW}\n")
    result = await mcp.get("run_script_with_dependencies", script_path="headed.py", **PATIENT)
    assert result["resolved_dependencies"] == [f"six=={result['stdout'].strip()}"]


@pytest.mark.case("B182")
async def test_dependencies_may_come_as_json_text(mcp: Mcp) -> None:
    result = await mcp.get(
        "run_script_with_dependencies", script_content=SHOW, dependencies='["six<1.17"]', args='["--x"]', **PATIENT
    )
    assert result["resolved_dependencies"] == [f"six=={result['stdout'].strip()}"]


async def test_packages_that_cannot_be_had_are_the_callers_failure_in_one_sentence(mcp: Mcp) -> None:
    answer = await mcp.call(
        "run_script_with_dependencies", script_content="print('ran')", dependencies=["six==0.0.0.1"], **PATIENT
    )
    assert answer.is_error
    assert (answer.data["status"], answer.data["exit_code"], answer.data["stdout"]) == ("failed", None, "")
    assert "six==0.0.0.1" in answer.data["error"]
    assert "not run" in answer.data["advice"]
