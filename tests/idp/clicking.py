"""FastMCP's client, signing in without a browser."""

from urllib.parse import parse_qs, urlsplit

from fastmcp.client.auth import OAuth
from mcp.client.auth import AuthorizationCodeResult

from tests.idp.served import click_through


class ClickingOAuth(OAuth):
    """FastMCP's client, with a person who clicks instead of a browser that opens."""

    async def redirect_handler(self, authorization_url: str) -> None:
        back = click_through(authorization_url)
        self.came_back = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}

    async def callback_handler(self) -> AuthorizationCodeResult:
        back = self.came_back
        return AuthorizationCodeResult(code=back["code"], state=back["state"], iss=back["iss"])
