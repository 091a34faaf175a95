"""FastMCP's client signs in at our identity provider, and asks for more when it needs more."""

import pytest
from fastmcp import Client

from tests.oauth.conftest import Guarded
from tests.oauth.signing_in import ClickingOAuth

pytestmark = pytest.mark.filterwarnings("ignore:Using in-memory token storage")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_signs_in_and_steps_up_when_a_tool_needs_more(guarded: Guarded, mode: str) -> None:
    url = guarded.site.url
    oauth = ClickingOAuth(url)
    async with Client(url, auth=oauth, mode=mode) as client:
        assert (await client.call_tool("py_list_jobs", {})).structured_content == {"jobs": [], "total": 0}
        assert oauth.asked == [{"python:execute", "jobs:read", "offline_access"}]
        done = await client.call_tool(
            "save_script", {"script_name": f"of-{mode}", "source": "print(1)"}, raise_on_error=False
        )
        assert not done.is_error, done.content
        assert len(oauth.asked) == 2
        assert oauth.asked[1] >= {"python:execute", "jobs:read", "scripts:write"}
        listed = await client.call_tool("py_list_scripts", {})
        assert len(oauth.asked) == 2
        assert f"of-{mode}" in str(listed.structured_content)
