"""SIGTERM: new work goes elsewhere, open calls are answered, jobs go on."""

import signal
from pathlib import Path
from typing import Any

import anyio

from tests.helpers.homes import temporary_home
from tests.helpers.over_http import Server, headers, request, serve
from tests.helpers.waiting import eventually

WAITS = """
import pathlib, time
pathlib.Path("begun").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.02)
print("went")
"""


def call(directory: Path) -> dict[str, Any]:
    given = {"directory": str(directory), "script_content": WAITS, "use_uv": False, "wait_seconds": 250}
    return request("tools/call", {"name": "run_script_in_dir", "arguments": given})


async def ask(server: Server, answers: list[Any]) -> None:
    async with server.http() as http:
        answer = await http.post(
            "/mcp", json=call(server.directory), headers=headers("tools/call", "run_script_in_dir")
        )
        text = answer.text
        answers.append(text)


async def test_open_calls_end_and_new_ones_are_sent_elsewhere() -> None:
    with temporary_home() as home:
        async with serve(home, options=["--toolsets", "core,jobs"], env={"PYEXEC_DRAIN_SECONDS": "250"}) as server:
            answers: list[str] = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, server, answers)
                await eventually((server.directory / "begun").exists)
                server.signal(signal.SIGTERM)
                async with server.http() as http:

                    async def refused() -> bool:
                        return (await http.get("/readyz")).status_code == 503

                    await eventually(refused)
                    assert (await http.get("/healthz")).status_code == 200
                    refusal = await http.post("/mcp", json=request("tools/list"), headers=headers("tools/list"))
                assert refusal.status_code == 503
                assert int(refusal.headers["retry-after"]) > 0
                (server.directory / "go").touch()
            assert "went" in answers[0]
            assert await server.ended() == 0


async def test_a_call_that_takes_too_long_is_answered_with_its_job_which_goes_on() -> None:
    with temporary_home() as home:
        async with serve(home, options=["--toolsets", "core,jobs"], env={"PYEXEC_DRAIN_SECONDS": "0"}) as server:
            answers: list[str] = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, server, answers)
                await eventually((server.directory / "begun").exists)
                server.signal(signal.SIGTERM)
            assert await server.ended() == 0
            assert '"status":"running"' in answers[0].replace(" ", "")
            directory = server.directory
        async with serve(home, options=["--toolsets", "core,jobs"]) as next_server, next_server.client() as client:
            listed = await client.call_tool("list_running_jobs", {})
            (job,) = (listed.structured_content or {})["result"]
            (directory / "go").touch()

            async def finished() -> bool:
                answer = await client.call_tool("get_job_output", {"job_id": job["job_id"]})
                return "went" in (answer.structured_content or {})["stdout"]

            await eventually(finished)


async def test_an_idle_server_ends_at_once() -> None:
    with temporary_home() as home:
        async with serve(home, options=["--toolsets", "jobs"]) as server, server.client("legacy") as client:
            await client.ping()
            server.signal(signal.SIGINT)
            with anyio.fail_after(60):
                assert await server.ended() == 0
