"""FastMCP's client signs in at our identity provider, and asks for more when it needs more."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from anyio.to_thread import run_sync
from fastmcp import Client
from fastmcp.client.auth import OAuth
from mcp.client.auth import AuthorizationCodeResult

from tests.idp.served import click_through
from tests.oauth.conftest import Guarded

pytestmark = pytest.mark.filterwarnings("ignore:Using in-memory token storage")


class ClickingOAuth(OAuth):
    """FastMCP's client, with a person who clicks instead of a browser that opens."""

    def __init__(self, url: str, **more: Any) -> None:
        super().__init__(url, **more)
        self.asked: list[set[str]] = []
        self.back: dict[str, str] = {}

    async def redirect_handler(self, authorization_url: str) -> None:
        asked = parse_qs(urlsplit(authorization_url).query)
        self.asked.append(set(asked["scope"][0].split()))
        back = await run_sync(click_through, authorization_url)
        self.back = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}

    async def callback_handler(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self.back["code"], state=self.back["state"], iss=self.back["iss"])


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
