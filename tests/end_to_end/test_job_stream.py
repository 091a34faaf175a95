"""The resource `job-stream://{job_id}`."""

import pytest
from mcp import MCPError

from tests.helpers import eventually
from tests.helpers.mcp import Mcp

SOURCE = """
import os, sys, time
print("first", flush=True)
print("warning", file=sys.stderr, flush=True)
while not os.path.exists("go on"): time.sleep(0.02)
print("second", flush=True)
"""


async def test_it_is_offered_as_a_template_of_plain_text(mcp: Mcp) -> None:
    templates = {template.uri_template: template for template in await mcp.client.list_resource_templates()}
    assert templates["job-stream://{job_id}"].mime_type == "text/plain"


async def test_it_holds_both_streams_so_far_and_is_stable_once_the_job_has_ended(mcp: Mcp) -> None:
    job_id = await mcp.start(SOURCE)
    expected = "---STDOUT---\nfirst\n\n---STDERR---\nwarning\n"

    async def has_begun() -> bool:
        return await mcp.stream(job_id) == expected

    await eventually(has_begun)
    (mcp.directory / "go on").touch()
    await mcp.finished(job_id)
    assert await mcp.stream(job_id) == "---STDOUT---\nfirst\nsecond\n\n---STDERR---\nwarning\n"
    assert await mcp.stream(job_id) == await mcp.stream(job_id)


async def test_a_job_that_prints_nothing_has_two_empty_parts(mcp: Mcp) -> None:
    job_id = (await mcp.run("pass"))["job_id"]
    assert await mcp.stream(job_id) == "---STDOUT---\n\n---STDERR---\n"


async def test_a_job_of_another_name_is_not_there(mcp: Mcp) -> None:
    with pytest.raises(MCPError, match="There is no job 'nothing-of-that-name'"):
        await mcp.stream("nothing-of-that-name")


async def test_a_file_that_is_not_there_is_said_to_be_missing(mcp: Mcp) -> None:
    job_id = (await mcp.run("pass"))["job_id"]
    with pytest.raises(MCPError, match=r"has no file 'plot\.png'"):
        await mcp.client.read_resource(f"job-file://{job_id}/plot.png")
