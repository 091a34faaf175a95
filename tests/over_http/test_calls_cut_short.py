"""What becomes of a run when its client cancels the call, or is gone."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server import _streamable_http_modern
from sse_starlette import EventSourceResponse

from tests.helpers.homes import temporary_home
from tests.helpers.over_http import LEGACY, Server, handshake, headers, messages, request, serve
from tests.helpers.waiting import eventually

BEATS = """
import time, pathlib
for beat in range(100000):
    pathlib.Path("beat").write_text(str(beat))
    print("beat", beat, flush=True)
    time.sleep(0.05)
"""


def call(work: Path, source: str = BEATS, *, progress: str | int = "p") -> dict[str, Any]:
    given = {"directory": str(work), "script_content": source, "use_uv": False, "wait_seconds": 250}
    made = request("tools/call", {"name": "run_script_in_dir", "arguments": given})
    made["params"]["_meta"]["progressToken"] = progress
    return made


async def job(server: Server, job_id: str) -> dict[str, Any]:
    async with server.client() as client:
        answer = await client.call_tool("py_job_status", {"job_id": job_id})
    assert answer.structured_content is not None
    return answer.structured_content["job"]


async def first_word(server: Server, work: Path) -> str:
    """Call, read up to the first progress message, which names the job, and close the stream."""
    told = headers("tools/call", "run_script_in_dir")
    async with server.http() as http, http.stream("POST", "/mcp", json=call(work), headers=told) as answer:
        read = ""
        async for text in answer.aiter_text():
            read += text
            if found := re.search(r"job ([0-9a-f]{32})", read):
                await eventually((work / "beat").exists)
                return found[1]
    raise AssertionError(read)


async def ended(server: Server, job_id: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = await job(server, job_id)
        return found if found["status"] not in ("pending", "running") else None

    found = await eventually(look, what="the end of the job")
    assert found is not None
    return found


@pytest.mark.case("B177")
async def test_closing_the_stream_of_a_call_ends_its_run_and_keeps_its_output(server: Server, work: Path) -> None:
    job_id = await first_word(server, work)
    found = await ended(server, job_id)
    assert found["status"] == "cancelled"
    async with server.client() as client:
        answer = await client.call_tool("get_job_output", {"job_id": job_id})
    assert "beat 0" in (answer.structured_content or {})["stdout"]


@pytest.mark.case("B177")
async def test_a_run_goes_on_as_a_job_where_the_operator_says_so() -> None:
    with temporary_home() as home:
        env = {"PYEXEC_ON_DISCONNECT": "detach"}
        async with serve(home, options=["--toolsets", "core,jobs"], env=env) as server:
            job_id = await first_word(server, server.directory)
            beat = (server.directory / "beat").read_text()
            await eventually(lambda: (server.directory / "beat").read_text() not in ("", beat))
            async with server.client() as client:
                listed = await client.call_tool("list_running_jobs", {})
                assert [one["job_id"] for one in (listed.structured_content or {})["result"]] == [job_id]
                await client.call_tool("kill_job", {"job_id": job_id})


@pytest.mark.case("B175")
@pytest.mark.case("B176")
async def test_a_cancelled_call_ends_its_run_and_its_stream_with_one_answer(server: Server, work: Path) -> None:
    told = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": LEGACY}
    async with server.http() as http:
        begun = await http.post("/mcp", json=handshake(), headers=told)
        told["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
        answers: list[Any] = []

        async def run() -> None:
            answer = await http.post("/mcp", json={**call(work), "id": 7}, headers=told)
            answers.extend(messages(answer.text))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await eventually((work / "beat").exists)
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
            assert (await http.post("/mcp", json=note, headers=told)).status_code == 202
        assert len([one for one in answers if one.get("id") == 7]) <= 1
        job_id = next(re.search(r"job ([0-9a-f]{32})", str(one)) for one in answers)
        assert job_id is not None
        assert (await ended(server, job_id[1]))["status"] == "cancelled"
        ping = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 8, "method": "ping"}, headers=told)
        assert messages(ping.text)[0]["result"] == {}


async def test_another_sessions_call_of_the_same_number_goes_on(server: Server, work: Path) -> None:
    async with server.http() as http, anyio.create_task_group() as tasks:
        sessions: list[dict[str, str]] = []
        for name in ("mine", "theirs"):
            told = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": LEGACY}
            begun = await http.post("/mcp", json=handshake(), headers=told)
            told["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
            sessions.append(told)
            (work / name).mkdir()

            async def run(told: dict[str, str] = told, folder: Path = work / name) -> None:
                await http.post("/mcp", json={**call(folder), "id": 7}, headers=told)

            tasks.start_soon(run)
            await eventually((work / name / "beat").exists)
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        await http.post("/mcp", json=note, headers=sessions[0])

        async with server.client() as client:

            async def running() -> list[str]:
                listed = await client.call_tool("list_running_jobs", {})
                return [one["job_id"] for one in (listed.structured_content or {})["result"]]

            async def one_is_left() -> bool:
                return len(await running()) == 1

            await eventually(one_is_left)
            beat = (work / "theirs" / "beat").read_text()
            await eventually(lambda: (work / "theirs" / "beat").read_text() not in ("", beat))
            await client.call_tool("kill_job", {"job_id": (await running())[0]})


async def test_a_client_with_a_handshake_that_is_gone_has_cancelled_nothing(server: Server, work: Path) -> None:
    told = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": LEGACY}
    async with server.http() as http:
        begun = await http.post("/mcp", json=handshake(), headers=told)
        told["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
        async with http.stream("POST", "/mcp", json=call(work), headers=told) as answer:
            async for text in answer.aiter_text():
                if found := re.search(r"job ([0-9a-f]{32})", text):
                    break
            else:
                raise AssertionError
    assert found is not None
    await eventually((work / "beat").exists)
    beat = (work / "beat").read_text()
    await eventually(lambda: (work / "beat").read_text() not in ("", beat))
    assert (await job(server, found[1]))["status"] == "running"
    async with server.client() as client:
        await client.call_tool("kill_job", {"job_id": found[1]})


@pytest.mark.case("B178")
async def test_others_are_answered_while_a_run_is_under_way(server: Server, work: Path) -> None:
    async with anyio.create_task_group() as tasks, server.client() as first, server.client("legacy") as second:

        async def run() -> None:
            await first.call_tool("run_script_in_dir", call(work)["params"]["arguments"])

        tasks.start_soon(run)
        await eventually((work / "beat").exists)
        with anyio.fail_after(30):
            assert await second.ping()
            assert await second.list_tools()
        tasks.cancel_scope.cancel()


@pytest.mark.case("B174")
async def test_streams_pass_proxies(server: Server, work: Path) -> None:
    async with server.http() as http:
        for modern in (True, False):
            told = headers("tools/call", "run_script_in_dir")
            body = call(work, "print('done')")
            if not modern:
                told = {"Accept": told["Accept"], "MCP-Protocol-Version": LEGACY}
                begun = await http.post("/mcp", json=handshake(), headers=told)
                told["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
            answer = await http.post("/mcp", json=body, headers=told)
            assert answer.headers["x-accel-buffering"] == "no"
            assert "no-cache" in answer.headers["cache-control"]
    # What keeps a silent stream open; proxies wait for a minute, some for half of one.
    assert max(_streamable_http_modern._SSE_PING_INTERVAL, EventSourceResponse.DEFAULT_PING_INTERVAL) <= 25
