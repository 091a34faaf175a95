"""FastMCP's client with a person beside it."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from anyio.to_thread import run_sync
from fastmcp.client.auth import OAuth
from mcp.client.auth import AuthorizationCodeResult

from tests.idp.served import click_through


class ClickingOAuth(OAuth):
    """FastMCP's client, with a person who clicks instead of a browser that opens."""

    def __init__(self, url: str, *, click: Callable[[str], str] = click_through, **more: Any) -> None:
        super().__init__(url, **more)
        self._click = click
        self.asked: list[set[str]] = []
        self.back: dict[str, str] = {}

    async def redirect_handler(self, authorization_url: str) -> None:
        asked = parse_qs(urlsplit(authorization_url).query)
        self.asked.append(set(asked["scope"][0].split()))
        back = await run_sync(self._click, authorization_url)
        self.back = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}

    async def callback_handler(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self.back["code"], state=self.back["state"], iss=self.back["iss"])
