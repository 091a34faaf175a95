"""Which tools a server offers, and the names some had once."""

import json

import pytest
from fastmcp.exceptions import ToolError

from tests.helpers.commands import Command
from tests.helpers.mcp import Mcp

SERVER_ENV = {"PYEXEC_TOOLSETS": "core"}


async def test_a_server_offers_the_toolsets_it_is_told_to(mcp: Mcp) -> None:
    names = {tool.name for tool in await mcp.client.list_tools()}
    assert {"run_script_in_dir", "py_job_status", "kill_job"} <= names
    assert not {"py_list_jobs", "list_environments"} & names
    with pytest.raises(ToolError, match="py_list_jobs"):
        await mcp.client.call_tool("py_list_jobs", {})


async def test_old_names_are_understood_and_not_listed(mcp: Mcp) -> None:
    assert "py_run_script_in_dir" not in {tool.name for tool in await mcp.client.list_tools()}
    given = {"directory": str(mcp.directory), "script_content": "print('old')", "use_uv": False}
    assert (await mcp.get("py_run_script_in_dir", **given))["stdout"] == "old\n"
    job_id = (await mcp.get("py_run_script_in_dir_async", **given))["job_id"]
    assert (await mcp.finished(job_id))["stdout"] == "old\n"
    refused = await mcp.refused("py_get_job_output", job_id="nothing")
    assert refused["error_code"] == "not_found"


async def test_an_optional_argument_may_be_null_all_the_same(mcp: Mcp) -> None:
    assert (await mcp.run("print('null')", python_version=None, args=None, env_vars=None))["stdout"] == "null\n"


def test_the_command_line_lists_them_with_their_size(run: Command) -> None:
    said = run("tools", env=SERVER_ENV).stdout
    assert "* core " in said
    assert "  jobs " in said
    entries = json.loads(run("tools", "--toolsets", "jobs", "--json").stdout)
    assert [entry["name"] for entry in entries] == [
        "list_running_jobs",
        "py_list_jobs",
        "py_prune_jobs",
        "cleanup_jobs",
    ]
    assert all(0 < entry["tokens"] < entry["size"] for entry in entries)


def test_a_toolset_that_is_none_is_refused_with_those_there_are(run: Command) -> None:
    refused = run("serve", "--toolsets", "core,nonsense")
    assert refused.status == 1
    for word in ("--toolsets", "nonsense", "environments", "default"):
        assert word in refused.stderr
