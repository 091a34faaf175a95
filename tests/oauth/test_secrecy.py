"""The token stays at the door: no program, log, record or context has it."""

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.helpers.homes import processes_of
from tests.helpers.waiting import eventually
from tests.oauth.site import Site, serving

PROGRAM = """
import os, sys, time
print(sorted(os.environ.items()), sys.argv, flush=True)
while not os.path.exists("go"): time.sleep(0.02)
"""


@pytest.fixture(scope="module")
async def site(module_home: Path) -> AsyncIterator[Site]:
    async with serving(module_home, PYEXEC_LOG_LEVEL="debug") as made:
        yield made


async def test_the_token_of_a_request_is_nowhere(
    site: Site, module_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = site.key.token(site.url)
    parts = [token.encode(), *(part.encode() for part in token.split(".")[1:])]
    run = {"directory": str(site.work), "script_content": PROGRAM, "use_uv": False, "async_mode": True}
    started = await site.call(token, "run_script_in_dir", **run)
    session = await site.session(token)
    call = {"name": "run_script_in_dir", "arguments": {**run, "job_label": "second"}}
    assert (await site.legacy(token, "tools/call", call, session=session)).status_code == 200
    assert (await site.rpc(token[:-6], "tools/list")).status_code == 401
    job_id = started["structuredContent"]["job_id"]

    async def printed() -> bool:
        found = await site.call(token, "py_job_status", job_id=job_id, incremental=False)
        return "PATH" in json.dumps(found)

    await eventually(printed)
    processes = processes_of(module_home)
    assert len(processes) >= 4
    for process in processes:
        for name in ("environ", "cmdline"):
            data = Path(f"/proc/{process.pid}/{name}").read_bytes()
            assert not any(part in data for part in parts), process
    (site.work / "go").touch()

    async def ended() -> bool:
        return "running" not in json.dumps(await site.call(token, "list_running_jobs", markdown_output=False))

    await eventually(ended)
    files = [path for path in module_home.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if any(part in path.read_bytes() for part in parts)] == []
    said = caplog.text.encode()
    assert not any(part in said for part in parts)


async def test_no_tool_can_see_the_token_of_its_request(site: Site) -> None:
    """Whatever a library keeps of a request (its state, its context, its headers) has none."""
    from fastmcp.server.dependencies import get_access_token, get_http_headers, get_http_request

    from pyexec.mcp.authorization.callers import current_identity

    token = site.key.token(site.url, scopes=["admin"])
    seen: list[str] = []
    server = site.server

    @server.tool
    def look() -> str:
        request, access = get_http_request(), get_access_token()
        assert access is not None
        seen.append(repr([request.headers.raw, get_http_headers(include_all=True), access.model_dump(), request.scope]))
        return current_identity().subject

    assert (await site.call(token, "look"))["structuredContent"] == {"result": "developer"}
    session = await site.session(token)
    await site.legacy(token, "tools/call", {"name": "look", "arguments": {}}, session=session)
    server.local_provider.remove_tool("look")
    assert len(seen) == 2
    assert not any(token.split(".")[2] in one for one in seen)
