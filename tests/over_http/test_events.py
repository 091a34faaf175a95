"""`GET /executions/{id}/events`: what an execution prints, pushed."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.helpers.over_http import Server
from tests.helpers.waiting import eventually

IN_STEPS = """
import os, pathlib, sys, time
os.write(1, "ééé\\n".encode())
os.write(2, b"to stderr\\n")
pathlib.Path("begun").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.02)
print("last", flush=True)
sys.exit(3)
"""


async def start(server: Server, work: Path, source: str = IN_STEPS) -> str:
    given = {"directory": str(work), "script_content": source, "use_uv": False, "async_mode": True}
    async with server.client() as client:
        answer = await client.call_tool("run_script_in_dir", given)
    return (answer.structured_content or {})["job_id"]


def parse(text: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "data" in fields:
            events.append({**json.loads(fields["data"]), "event": fields["event"], "id": fields["id"]})
    return events


def printed(events: list[dict[str, Any]], stream: str = "stdout") -> str:
    return "".join(one["text"] for one in events if one["event"] == "output" and one["stream"] == stream)


async def read_until(response: httpx2.Response, what: str) -> str:
    text = ""
    async for piece in response.aiter_text():
        text += piece
        if what in text:
            break
    return text


async def test_output_comes_as_it_is_printed_and_can_be_read_on_from_any_event(server: Server, work: Path) -> None:
    job_id = await start(server, work)
    path = f"/executions/{job_id}/events"
    async with server.http() as http:
        async with http.stream("GET", path) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.headers["x-accel-buffering"] == "no"
            before = parse(await read_until(answer, "to stderr\\n"))
        assert {"event": "state", "status": "running"}.items() <= before[-1].items() | before[0].items() | before[
            1
        ].items()
        (work / "go").touch()
        after = parse((await http.get(path, headers={"Last-Event-ID": before[-1]["id"]})).text)
        assert printed(before) + printed(after) == "ééé\nlast\n"
        assert printed(before, "stderr") + printed(after, "stderr") == "to stderr\n"
        assert (after[-1]["event"], after[-1]["status"], after[-1]["exit_code"]) == ("end", "failed", 3)
        whole = parse((await http.get(path)).text)
        assert (printed(whole), printed(whole, "stderr")) == ("ééé\nlast\n", "to stderr\n")
        for event in whole[:-1]:
            rest = parse((await http.get(path, params={"cursor": event["id"]})).text)
            later = whole[whole.index(event) + 1 :]
            assert printed(rest) == printed(later)
        # Whoever has seen the end is told to stop, which browsers do.
        assert (await http.get(path, headers={"Last-Event-ID": whole[-1]["id"]})).status_code == 204


async def test_characters_stay_whole_however_they_are_written(server: Server, work: Path) -> None:
    source = """
import os, time, pathlib
for byte in "aé€𝄞".encode():
    os.write(1, bytes([byte])); time.sleep(0.12)
"""
    job_id = await start(server, work, source)
    async with server.http() as http:
        events = parse((await http.get(f"/executions/{job_id}/events")).text)
        assert printed(events) == "aé€𝄞"
        for number, event in enumerate(events[:-1]):
            rest = await http.get(f"/executions/{job_id}/events", headers={"Last-Event-ID": event["id"]})
            assert printed(parse(rest.text)) == printed(events[number + 1 :])


@pytest.mark.case("B057")
async def test_what_some_take_for_the_end_of_a_line_is_none(server: Server, work: Path) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf"
    job_id = await start(server, work, f"print({text!r})")
    async with server.http() as http:
        events = parse((await http.get(f"/executions/{job_id}/events")).text)
    assert printed(events) == f"{text}\n"
    assert [event["event"] for event in events].count("end") == 1


async def test_an_unknown_job_and_a_cursor_that_is_none_are_refused(server: Server, work: Path) -> None:
    async with server.http() as http:
        unknown = await http.get(f"/executions/{'0' * 32}/events")
        assert (unknown.status_code, unknown.json()["error_code"]) == (404, "not_found")
        job_id = await start(server, work, "print(1)")
        wrong = await http.get(f"/executions/{job_id}/events", headers={"Last-Event-ID": "nonsense"})
        assert (wrong.status_code, wrong.json()["error_code"]) == (400, "invalid_argument")
        await http.get(f"/executions/{job_id}/events")


async def test_many_follow_one_job(server: Server, work: Path) -> None:
    job_id = await start(server, work)
    await eventually((work / "begun").exists)
    read: list[str] = []
    limits = httpx2.Limits(max_connections=None)
    async with server.http(limits=limits) as http, anyio.create_task_group() as tasks:

        async def follow() -> None:
            read.append(printed(parse((await http.get(f"/executions/{job_id}/events")).text)))

        for _ in range(40):
            tasks.start_soon(follow)
        (work / "go").touch()
    assert read == ["ééé\nlast\n"] * 40
