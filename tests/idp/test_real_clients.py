"""Clients that nobody here wrote, against the real server."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
import uvicorn
from fastmcp import Client, FastMCP
from fastmcp.client.auth import OAuth
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from fastmcp.utilities.http import find_available_port
from mcp.client.auth import AuthorizationCodeResult

from tests.helpers.waiting import eventually
from tests.idp.javascript import needs_packages, run
from tests.idp.served import Operator, click_through, operator
from tests.idp.site import PASSWORD, SCOPE


@pytest.fixture(scope="module")
def idp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    made = operator(tmp_path_factory.mktemp("idp"))
    made.ok("users", "add", "ada", "--password-stdin", stdin=f"{PASSWORD}\n")
    with made.serving():
        yield made


class ClickingOAuth(OAuth):
    """FastMCP's client, with a person who clicks instead of a browser that opens."""

    async def redirect_handler(self, authorization_url: str) -> None:
        back = click_through(authorization_url)
        self.came_back = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}

    async def callback_handler(self) -> AuthorizationCodeResult:
        back = self.came_back
        return AuthorizationCodeResult(code=back["code"], state=back["state"], iss=back["iss"])


@asynccontextmanager
async def listening(server: FastMCP, port: int) -> AsyncGenerator[None]:
    """Serve, and close everything again."""
    web = uvicorn.Server(uvicorn.Config(server.http_app(), port=port, log_level="warning", lifespan="on"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(web.serve)
        await eventually(lambda: web.started)
        yield
        web.should_exit = True


@pytest.mark.filterwarnings("ignore:Using in-memory token storage")
async def test_an_mcp_client_signs_in_at_a_server_that_knows_the_issuer_only(idp: Operator) -> None:
    verifier = JWTVerifier(
        jwks_uri=f"{idp.issuer}/.well-known/jwks.json", issuer=idp.issuer, algorithm="ES256", audience="set below"
    )
    server = FastMCP("Guarded")

    @server.tool
    def whoami() -> dict[str, Any]:
        token = get_access_token()
        assert token is not None
        return {"client": token.client_id, "scopes": token.scopes, "subject": token.claims["sub"]}

    port = find_available_port()
    base = f"http://127.0.0.1:{port}"
    verifier.audience = f"{base}/mcp"
    provider = RemoteAuthProvider(
        token_verifier=verifier,
        authorization_servers=[idp.issuer],  # pyright: ignore[reportArgumentType]
        base_url=base,
        scopes_supported=[SCOPE],
    )
    server.auth = provider
    idp.ok("resources", "add", f"{base}/mcp", "--name", "Guarded", "--scope", f"{SCOPE}=Run Python code")
    url = f"{base}/mcp"
    async with listening(server, port), Client(url, auth=ClickingOAuth(url)) as client:
        found = (await client.call_tool("whoami")).data
    assert set(found["scopes"]) == {SCOPE, "offline_access"}  # The client asks for the second by itself.
    assert found["subject"] in idp.ok("users", "list")
    assert "registered" in idp.ok("audit", "--limit", "20")


@needs_packages
def test_a_strict_client_finds_nothing_to_object_to(idp: Operator) -> None:
    resource = "https://strict.example/mcp"
    idp.ok("resources", "add", resource, "--scope", "strict:read=Read", "--scope", "strict:write=Write")
    said = idp.ok("clients", "add", "Behind", "--introspects", resource).split()
    checks = json.loads(
        run(
            "strict_client.mjs",
            ISSUER=idp.issuer,
            SERVER_ID=said[1],
            SERVER_SECRET=said[-1],
            RESOURCE=resource,
            USER_PASSWORD=PASSWORD,
        )
    )
    assert len(checks) >= 15
