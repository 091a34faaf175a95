"""Sessions as a client sees them: `execute_python` with a `session_id`, and the tools around it."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ImageContent, TextContent

from tests.helpers.homes import servers_of
from tests.helpers.mcp import Mcp, connect
from tests.helpers.waiting import eventually
from tests.walls.bubblewrap import SERVER

SERVER_ENV = {
    **SERVER,
    "PYEXEC_TOOLSETS": "core,jobs,execute,sessions,files",
}

pytestmark = [pytest.mark.needs_uv, pytest.mark.root, pytest.mark.usefixtures("environments")]


async def call(mcp: Mcp, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a tool; return the structured result, with the text as `text`."""
    answer = await mcp.client.call_tool(tool, arguments, raise_on_error=False)
    assert isinstance(answer.content[0], TextContent)
    assert answer.structured_content is not None, answer.content[0].text
    more = list(answer.content[1:])
    return {**answer.structured_content, "text": answer.content[0].text, "is_error": answer.is_error, "more": more}


async def cell(mcp: Mcp, session_id: str, code: str, /, **arguments: Any) -> dict[str, Any]:
    return await call(mcp, "execute_python", code=code, session_id=session_id, wait_seconds=250, **arguments)


async def test_state_figures_and_names_stay_from_one_call_to_the_next(own_server: Mcp) -> None:
    first = await cell(own_server, "analysis", "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 4]})")
    assert (first["status"], first["session_id"]) == ("completed", "analysis")
    second = await cell(own_server, "analysis", "df.plot(); int(df['a'].sum())")
    assert second["result"] == "7"
    assert [type(one) for one in second["more"]] == [ImageContent]
    third = await cell(own_server, "analysis", "'nothing new is shown'")
    assert third["more"] == []


async def test_a_list_and_a_look_inside(own_server: Mcp) -> None:
    await cell(own_server, "look", "import numpy as np\ngrid = np.zeros((3, 4))")
    told = await call(own_server, "session_info", session_id="look")
    assert {"name": "grid", "type": "numpy.ndarray", "shape": [3, 4], "bytes": 96} in told["variables"]
    assert "`grid`: numpy.ndarray (3 x 4, 96 bytes)" in told["text"]
    listed = {one["session_id"]: one for one in (await call(own_server, "list_sessions"))["sessions"]}
    assert listed["look"]["state"] == "idle"
    assert 0 < listed["look"]["memory_mb"] < listed["look"]["memory_limit_mb"]


async def test_an_interrupt_keeps_the_variables(own_server: Mcp) -> None:
    await cell(own_server, "stop", "x = 5")
    begun = await call(own_server, "execute_python", code="while True: pass", session_id="stop", wait_seconds=0)

    async def status() -> str:
        return str((await own_server.job(begun["job_id"]))["status"])

    async def runs() -> bool:
        return await status() == "running"

    await eventually(runs)
    told = await call(own_server, "interrupt_session", session_id="stop")
    assert (told["job_id"], told["message"]) == (begun["job_id"], "What ran in it was interrupted.")
    assert await status() == "cancelled"
    assert (await cell(own_server, "stop", "x"))["result"] == "5"
    assert (await call(own_server, "interrupt_session", session_id="stop"))["message"] == "Nothing ran in it."


async def test_an_end_is_an_error_with_its_reason_until_a_restart_is_asked_for(own_server: Mcp) -> None:
    await cell(own_server, "ends", "open('kept.txt', 'w').write('still here'); x = 5")
    await cell(own_server, "ends", "import os; os._exit(9)")
    for _ in range(2):
        told = await cell(own_server, "ends", "x")
        assert (told["is_error"], told["error_code"]) == (True, "session_ended")
        assert (
            "Session 'ends' has ended: exited with code 9. Its variables are lost, its files are kept" in told["text"]
        )
        assert "restart_session starts it anew" in told["text"]
    assert not (await call(own_server, "restart_session", session_id="ends"))["is_error"]
    assert (await cell(own_server, "ends", "('x' in globals(), open('kept.txt').read())"))["result"] == (
        "(False, 'still here')"
    )


@pytest.mark.case("B047")
async def test_half_a_surrogate_breaks_nothing_wherever_it_comes_from(own_server: Mcp) -> None:
    printed = await cell(own_server, "halves", "print('\\udcff')")
    assert (printed["status"], printed["stdout"].strip() != "") == ("completed", True)
    raised = await cell(own_server, "halves", "raise Exception(chr(0xd8ff))")
    assert (raised["exception"]["type"], raised["exception"]["message"]) == ("Exception", "\\ud8ff")
    assert "dead" in (await cell(own_server, "halves", "'\\udead'"))["result"]
    assert (await cell(own_server, "halves", "1 + 1"))["result"] == "2"


@pytest.mark.case("B130")
async def test_what_was_printed_before_a_time_out_is_told_and_nothing_after_it(own_server: Mcp) -> None:
    code = "import time\nn = 0\nwhile True:\n    print(n, flush=True)\n    n += 1\n    time.sleep(0.05)"
    ended = await cell(own_server, "endless", code, timeout_seconds=1)
    assert ended["status"] == "timed_out"
    last = int((await cell(own_server, "endless", "n"))["result"])
    lines = ended["stdout"].split()
    assert lines == [str(number) for number in range(len(lines))]
    assert last - 1 <= len(lines) <= last + 1
    later = await call(own_server, "get_job_output", job_id=ended["job_id"])
    assert later["stdout"] == ended["stdout"]


async def test_a_closed_session_is_gone_with_its_files(own_server: Mcp) -> None:
    await cell(own_server, "closes", "open('kept.txt', 'w').write('x')")
    await call(own_server, "close_session", session_id="closes")
    assert (await cell(own_server, "closes", "import os; os.listdir()"))["result"] == "[]"
    unknown = await call(own_server, "close_session", session_id="never")
    assert (unknown["is_error"], unknown["error_code"]) == (True, "not_found")


async def test_files_go_in_before_the_first_call_and_come_out_after_the_end(own_server: Mcp) -> None:
    made = await call(own_server, "upload_file", session_id="files", path="data/in.csv", content="a,b\n1,2\n")
    assert made["uri"] == "workspace://files/data/in.csv"
    code = """
import pandas as pd
with open('data/in.csv', 'a') as file:
    file.write('3,4\\n')
pd.read_csv('data/in.csv').to_json('out.json')
"""
    ran = await cell(own_server, "files", code)
    assert ran["status"] == "completed", ran["text"]
    assert [one["uri"] for one in ran["files"]] == ["workspace://files/data/in.csv", "workspace://files/out.json"]
    await cell(own_server, "files", "import os; os._exit(1)")
    read = await call(own_server, "download_file", session_id="files", path="out.json")
    assert read["content"] == '{"a":{"0":1,"1":3},"b":{"0":2,"1":4}}'
    exported = await call(own_server, "export_session", session_id="files", format="script")
    assert "pd.read_csv('data/in.csv')" in exported["content"]


async def test_sessions_and_their_cells_outlive_a_server_that_is_killed(module_home: Path, own_server: Mcp) -> None:
    before = set(servers_of(module_home))
    told: list[dict[str, Any]] = []
    with suppress(Exception):  # Its client loses the server, and says so in ways of its own.
        async with connect(module_home, env=SERVER_ENV) as other:
            told += [await cell(other, "lives", code) for code in ("x = 40", "x += 1")]
            for pid in set(servers_of(module_home)) - before:
                os.kill(pid, signal.SIGKILL)
    listed = await own_server.get("py_list_jobs")
    assert [job["id"] for job in listed["jobs"][:2]] == [answer["job_id"] for answer in reversed(told)]
    assert (await cell(own_server, "lives", "x + 1"))["result"] == "42"


async def test_what_a_session_has_can_be_read_as_data(own_server: Mcp) -> None:
    await cell(own_server, "data", "x = 5")
    answer = await own_server.client.call_tool("session_info", {"session_id": "data", "markdown_output": False})
    assert isinstance(answer.content[0], TextContent)
    told = json.loads(answer.content[0].text)
    assert [(one["name"], one["type"]) for one in told["variables"]] == [("x", "int")]
