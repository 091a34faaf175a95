"""Toolsets, and what their tools cost a model that reads them."""

import json
from typing import Any, NoReturn

import pytest

from pyexec.domain.principals import Principal
from pyexec.domain.toolsets import DEFAULT_TOOLSETS, NAMED_ONLY, SERVICE_TOOLSETS, TOOLSETS, parse_toolsets
from pyexec.mcp.catalogue import catalogue
from pyexec.mcp.server import OverHttp, build_server
from pyexec.mcp.toolsets import ADDERS

READ_BY_A_MODEL = 4500
READ_OF_A_SERVICE = 3000
WITH_OUTPUT_SCHEMAS = 9000


class NoServices:
    async def get(self) -> NoReturn:
        raise AssertionError


def nobody() -> Principal:
    raise AssertionError


def tokens(value: Any) -> int:
    import bpe_openai  # Loading its vocabulary takes seconds, and every worker would when it collects the tests.

    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return len(bpe_openai.get_encoding("o200k_base").encode(text))


async def test_the_tools_of_a_local_server_leave_a_model_its_context() -> None:
    tools = await build_server(NoServices(), nobody, 20, DEFAULT_TOOLSETS).list_tools()
    read = sum(tokens([tool.name, tool.description, tool.parameters]) for tool in tools)
    assert read <= READ_BY_A_MODEL
    assert read + sum(tokens(tool.output_schema) for tool in tools) <= WITH_OUTPUT_SCHEMAS


async def test_the_tools_of_a_service_leave_a_model_its_context_and_run_nothing_on_the_host() -> None:
    over_http = OverHttp(closed_by_client=lambda: None)
    tools = await build_server(NoServices(), nobody, 20, SERVICE_TOOLSETS, over_http=over_http).list_tools()
    names = {tool.name for tool in tools}
    assert {"execute_python", "py_job_status", "get_job_output", "kill_job", "py_list_jobs"} <= names
    local = await build_server(NoServices(), nobody, 20, DEFAULT_TOOLSETS).list_tools()
    on_the_host = {tool.name for tool in local} - {tool.name for tool in tools}
    assert {"run_script_in_dir", "benchmark_scripts", "save_script", "list_environments"} & names == set()
    assert {"run_script_in_dir", "save_script", "list_environments"} <= on_the_host
    assert sum(tokens([tool.name, tool.description, tool.parameters]) for tool in tools) <= READ_OF_A_SERVICE


async def test_the_size_that_is_told_is_about_the_tokens_there_are() -> None:
    told = sum(entry.tokens for entry in await catalogue())
    tools = await build_server(NoServices(), nobody, 20, tuple(TOOLSETS)).list_tools()
    counted = sum(tokens({"name": t.name, "description": t.description, "inputSchema": t.parameters}) for t in tools)
    assert told == pytest.approx(counted, rel=0.1)


async def test_no_argument_of_a_tool_says_that_it_may_be_null() -> None:
    tools = await build_server(NoServices(), nobody, 20, tuple(TOOLSETS)).list_tools()
    assert not [tool.name for tool in tools if '"null"' in json.dumps(tool.parameters)]


def test_every_toolset_has_a_meaning_and_tools() -> None:
    assert list(ADDERS) == list(TOOLSETS)
    assert set(DEFAULT_TOOLSETS) <= set(TOOLSETS)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("core", ("core",)),
        (" Jobs , core,", ("core", "jobs")),
        ("default", DEFAULT_TOOLSETS),
        ("all", tuple(name for name in TOOLSETS if name not in NAMED_ONLY)),
        (f"all,{','.join(sorted(NAMED_ONLY))}", tuple(TOOLSETS)),
    ],
)
def test_toolsets_are_named_with_commas_between_them(text: str, names: tuple[str, ...]) -> None:
    assert parse_toolsets(text) == names


@pytest.mark.parametrize("text", ["", ",", "core,none", "core jobs"])
def test_a_name_that_is_no_toolset_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no toolset"):
        parse_toolsets(text)
