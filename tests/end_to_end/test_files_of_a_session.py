"""The files of a session that runs behind the bubblewrap wall."""

import pytest

from tests.helpers.mcp import Mcp
from tests.walls.bubblewrap import SERVER

SERVER_ENV = {
    **SERVER,
    "PYEXEC_TOOLSETS": "execute,sessions,files",
    "PYEXEC_SANDBOX_READY": "0",
}

pytestmark = [pytest.mark.needs_uv, pytest.mark.root, pytest.mark.usefixtures("environments")]


@pytest.mark.exhaustive
async def test_code_and_tools_work_on_the_same_files_while_it_lives_and_afterwards(mcp: Mcp) -> None:
    given = {"session_id": "s", "wait_seconds": 250, "timeout_seconds": 200}
    await mcp.client.call_tool("execute_python", {"code": "open('made', 'w').write('inside')", **given})
    await mcp.get("upload_file", session_id="s", path="sent/a.txt", content="outside")
    answer = await mcp.client.call_tool("execute_python", {"code": "open('/workspace/sent/a.txt').read()", **given})
    assert answer.structured_content is not None
    assert answer.structured_content["result"] == "'outside'"
    assert (await mcp.get("download_file", session_id="s", path="made"))["content"] == "inside"
    await mcp.get("restart_session", session_id="s")
    listed = await mcp.get("list_files", session_id="s", pattern="*")
    assert [one["path"] for one in listed["files"]] == ["made", "sent", "sent/a.txt"]
    await mcp.get("close_session", session_id="s")
    assert (await mcp.refused("list_files", session_id="s"))["error_code"] == "not_found"
