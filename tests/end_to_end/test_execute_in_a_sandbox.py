"""`execute_python` behind the bubblewrap wall, as a client sees it."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ImageContent, ResourceLink, TextContent, TextResourceContents

from tests.helpers.mcp import Mcp
from tests.helpers.waiting import with_enough_time
from tests.walls.bubblewrap import SERVER

SERVER_ENV = {
    **SERVER,
    "PYEXEC_TOOLSETS": "default,execute,sessions",
}

pytestmark = [pytest.mark.needs_uv, pytest.mark.root, pytest.mark.usefixtures("environments")]

FIGURE = """
import matplotlib.pyplot as plt, pandas as pd
plt.plot([1, 2, 4], label="sold"); plt.title("Sales")
open("out.csv", "w").write("a,b\\n1,2\\n")
print("drawn")
pd.DataFrame({"a": range(3)})
"""


async def execute(mcp: Mcp, code: str, /, **arguments: Any) -> tuple[dict[str, Any], str, list[Any]]:
    """Run a cell; return the structured result, the text, and what the answer carries besides."""
    given = {"code": code, "wait_seconds": 250, **arguments}
    answer = await mcp.client.call_tool("execute_python", given, raise_on_error=False)
    text, *more = answer.content
    assert isinstance(text, TextContent)
    assert answer.structured_content is not None, text.text
    return answer.structured_content, text.text, more


async def test_nothing_of_the_machine_is_there(own_server: Mcp, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cr3t")
    code = f"""
import os, socket
found = [os.path.exists({str(tmp_path)!r}), os.path.exists("/etc/shadow"), os.getuid(), os.getcwd()]
try:
    socket.create_connection(("127.0.0.1", 80), 1)
except OSError as error:
    found.append(error.strerror)
found
"""
    data, _text, _more = await execute(own_server, code)
    assert data["result"] == "[False, False, 1000, '/work', 'Network is unreachable']"


async def test_each_call_is_a_fresh_interpreter(own_server: Mcp) -> None:
    await execute(own_server, "kept = 1; open('kept', 'w').close()")
    data, _text, _more = await execute(own_server, "import os; ['kept' in globals(), os.listdir()]")
    assert data["result"] == "[False, []]"


async def test_pictures_tables_and_files_come_out(own_server: Mcp) -> None:
    data, text, more = await execute(own_server, FIGURE)
    assert (data["status"], data["stdout"]) == ("completed", "drawn\n")
    assert [type(one) for one in more] == [ImageContent, ResourceLink]
    assert more[0].mime_type == "image/png"
    figure = next(one for one in data["displays"] if one["kind"] == "figure")
    assert figure["chart"]["axes"][0]["series"][0]["y"] == [1, 2, 4]
    (content,) = await own_server.client.read_resource(str(more[1].uri))
    assert isinstance(content, TextResourceContents)
    assert content.text == "a,b\n1,2\n"
    assert "out.csv" in text


async def test_out_of_memory_is_an_error_that_says_what_to_do(own_server: Mcp) -> None:
    data, text, _more = await execute(
        own_server, "import mmap\nkept = mmap.mmap(-1, 2**30)\nwhile True: kept.write(bytes(2**20))"
    )
    assert (data["status"], data["success"]) == ("failed", False)
    assert "limit of 512 MB" in data["error"]
    assert "Use less memory" in data["advice"]
    assert "limit of 512 MB" in text


async def test_a_time_out_tells_what_was_shown_until_then(own_server: Mcp) -> None:
    (data, _text, _more), _seconds = await with_enough_time(
        lambda seconds: execute(own_server, "print('before')\nwhile True: pass", timeout_seconds=seconds),
        lambda answer: answer[0]["stdout"],
    )
    assert (data["status"], data["stdout"], data["exception"]["type"]) == ("timed_out", "before\n", "KeyboardInterrupt")


async def test_it_is_a_job_like_any_other(own_server: Mcp) -> None:
    data, _text, _more = await execute(
        own_server, "import time\nprint('up', flush=True)\ntime.sleep(100)", wait_seconds=0, timeout_seconds=0
    )
    job_id = data["job_id"]
    await own_server.client.call_tool("kill_job", {"job_id": job_id})
    listed = await own_server.client.call_tool("py_list_jobs", {"limit": 50})
    assert job_id in json.dumps(listed.structured_content)
    assert "warm-up" not in json.dumps(listed.structured_content)
    assert (await own_server.job(job_id))["status"] == "cancelled"


async def test_its_arguments_are_those_that_a_sandbox_has(own_server: Mcp) -> None:
    tools = {tool.name: tool for tool in await own_server.client.list_tools()}
    assert {"directory", "env_file", "use_uv"}.isdisjoint(tools["execute_python"].input_schema["properties"])
    assert "sandbox" in (tools["execute_python"].description or "")


async def test_packages_come_with_a_call_and_into_a_live_session(own_server: Mcp) -> None:
    data, _text, _more = await execute(own_server, "import iniconfig; iniconfig.__file__", dependencies=["iniconfig"])
    assert data["result"] == "'/packages/iniconfig/__init__.py'"
    await execute(own_server, "kept = 5", session_id="packages")
    given = {"session_id": "packages", "packages": '["iniconfig", "toolz"]'}
    answer = await own_server.client.call_tool("install_packages", given)
    assert answer.structured_content is not None
    names = {one.partition("==")[0] for one in answer.structured_content["installed"]}
    assert names == {"iniconfig", "toolz"}
    data, _text, _more = await execute(own_server, "import toolz; toolz.identity(kept)", session_id="packages")
    assert data["result"] == "5"


async def test_what_cannot_be_installed_is_an_error_with_a_sentence(own_server: Mcp) -> None:
    await execute(own_server, "1", session_id="refusing")
    for packages, told in ((["numpy<2"], "sandboxes have numpy"), (["./x"], "is a path on this machine")):
        given = {"session_id": "refusing", "packages": packages}
        answer = await own_server.client.call_tool("install_packages", given, raise_on_error=False)
        text = answer.content[0]
        assert answer.is_error
        assert isinstance(text, TextContent)
        assert told in text.text
    data, _text, _more = await execute(own_server, "import toolz2", session_id="refusing")
    assert "install_packages" in data["advice"]
