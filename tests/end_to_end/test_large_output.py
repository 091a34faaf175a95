"""More output than fits anywhere: bounded answers, bounded memory, true totals."""

import random

import pytest

from tests.helpers.homes import servers_of
from tests.helpers.mcp import Mcp
from tests.helpers.processes import peak_memory

MEGABYTE = 1024 * 1024


@pytest.mark.case("B050")
async def test_200_megabytes_are_answered_by_head_and_tail_in_bounded_memory(mcp: Mcp) -> None:
    await mcp.run("print('warm')")
    (server,) = servers_of(mcp.home)
    before = peak_memory(server)
    source = "import sys\nfor number in range(200): sys.stdout.write(str(number).ljust(999_999) + '\\n')"
    result = await mcp.run(source, wait_seconds=60)
    assert (result["status"], result["stdout_bytes"], result["truncated"]) == ("completed", 200_000_000, True)
    assert result["stdout"].startswith("0   ")
    assert result["stdout"].endswith("   \n")
    assert len(result["stdout"].encode()) < 60_100
    answer = await mcp.call("get_job_output", job_id=result["job_id"], max_output_bytes=4 * MEGABYTE)
    assert len(answer.data["stdout"]) < 4.1 * MEGABYTE
    assert "199  " in answer.data["stdout"]
    assert "next_cursor" in answer.text
    assert peak_memory(server) - before < 100 * MEGABYTE
    assert len(await mcp.client.list_tools()) > 9, "the connection goes on"
    kept = sum(file.stat().st_size for file in (mcp.home / "executions" / result["job_id"]).glob("stdout*"))
    assert 40 * MEGABYTE < kept <= 54 * MEGABYTE


@pytest.mark.exhaustive
async def test_a_line_of_10_megabytes_is_read_on_to_its_end(mcp: Mcp) -> None:
    source = "import random\nrandom.seed(1)\nprint(random.randbytes(5_000_000).hex())"
    result = await mcp.run(source, wait_seconds=60)
    assert result["stdout_bytes"] == 10_000_001
    read = await mcp.read_on(result["job_id"], max_output_bytes=3_000_000)
    assert len(read.stdout) == 10_000_001
    assert read.stdout == random.Random(1).randbytes(5_000_000).hex() + "\n"
