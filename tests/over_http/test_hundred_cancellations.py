"""A hundred calls that are cancelled at about the time at which they end."""

import collections
import time
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.helpers.homes import processes_of
from tests.helpers.over_http import LEGACY, Server, handshake, messages
from tests.helpers.waiting import eventually

pytestmark = pytest.mark.exhaustive

CALLS = 100
AT_ONCE = 4
SOURCE = "import time; time.sleep(0.05); print('done')"


@pytest.mark.case("B175")
@pytest.mark.case("B176")
async def test_a_hundred_calls_cancelled_near_their_end_have_one_answer_each_at_most(
    server: Server, work: Path
) -> None:
    answers: collections.Counter[Any] = collections.Counter()
    async with server.http(limits=httpx2.Limits(max_connections=4 * AT_ONCE)) as http:
        told = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": LEGACY}
        begun = await http.post("/mcp", json=handshake(0), headers=told)
        told["Mcp-Session-Id"] = begun.headers["mcp-session-id"]

        async def call(number: int) -> None:
            given = {"directory": str(work), "script_content": SOURCE, "use_uv": False, "wait_seconds": 100}
            params = {"name": "run_script_in_dir", "arguments": given}
            body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            answer = await http.post("/mcp", json=body, headers=told)
            assert answer.status_code == 200
            answers.update(one["id"] for one in messages(answer.text) if "id" in one)

        async def cancel(number: int, seconds: float) -> None:
            await anyio.sleep(seconds)
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
            assert (await http.post("/mcp", json=note, headers=told)).status_code == 202

        async def ping(number: int) -> None:
            answer = await http.post("/mcp", json={"jsonrpc": "2.0", "id": number, "method": "ping"}, headers=told)
            (found,) = messages(answer.text)
            assert (found["id"], found["result"]) == (number, {})

        began = time.monotonic()
        await call(1)
        natural = time.monotonic() - began
        for first in range(2, CALLS + 2, AT_ONCE):
            async with anyio.create_task_group() as tasks:
                for number in range(first, first + AT_ONCE):
                    tasks.start_soon(call, number)
                    # From long before the end to a little after it.
                    tasks.start_soon(cancel, number, natural * (number * 7 % CALLS) / CALLS * 1.3)
            await ping(10_000 + first)
    assert max(answers.values()) == 1
    assert answers[1] == 1
    async with server.client() as client:

        async def nothing_runs() -> bool:
            listed = await client.call_tool("list_running_jobs", {})
            return (listed.structured_content or {})["result"] == []

        await eventually(nothing_runs)
        jobs = (await client.call_tool("py_list_jobs", {"limit": 200})).structured_content or {}
    ends = collections.Counter(one["status"] for one in jobs["jobs"])
    assert ends["cancelled"] > 0
    assert ends["completed"] > 1
    await eventually(lambda: not [one for one in processes_of(server.home) if not one.is_server])
    assert server.process.poll() is None
