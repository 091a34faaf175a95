"""The server over HTTP in this process, with whoever's tokens count, and raw requests to it."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import uvicorn
from fastmcp import FastMCP
from fastmcp.utilities.http import find_available_port

from pyexec.app.authorization import Authorization, open_authorization
from pyexec.app.lazy import LazyServices
from pyexec.auth.development import DevelopmentKey
from pyexec.domain.toolsets import TOOLSETS
from pyexec.mcp.server import build_server
from pyexec.settings import load_settings
from pyexec.storage.ended_users import EndedUsers
from pyexec.storage.state_folder import StateFolder
from tests.helpers.homes import environment
from tests.helpers.waiting import eventually
from tests.oauth.tokens import Signing

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
_ACCEPT = "application/json, text/event-stream"


@dataclass
class Site:
    """A server that listens."""

    base: str
    authorization: Authorization
    given_key: DevelopmentKey | None
    http: httpx2.AsyncClient
    work: Path
    server: FastMCP

    @property
    def key(self) -> DevelopmentKey:
        assert self.given_key is not None
        return self.given_key

    def signing(self, issuer: str) -> Signing:
        return Signing(issuer=issuer, resource=self.url)

    @property
    def url(self) -> str:
        return f"{self.base}/mcp"

    def headers(self, token: str | None, **more: str) -> dict[str, str]:
        given = {} if token is None else {"authorization": f"Bearer {token}"}
        return {"accept": _ACCEPT, "content-type": "application/json", **given, **more}

    async def rpc(
        self, token: str | None, method: str, params: dict[str, Any] | None = None, **headers: str
    ) -> httpx2.Response:
        """Send one message as the newest protocol has it."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {**(params or {}), "_meta": meta}
        named = params.get("name") or params.get("uri")
        own = {"mcp-protocol-version": MODERN, "mcp-method": method, **({"mcp-name": named} if named else {})}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post(self.url, json=body, headers=self.headers(token, **{**own, **headers}))

    async def call(self, token: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return its result."""
        answer = await self.rpc(token, "tools/call", {"name": tool, "arguments": arguments})
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return message_in(answer)["result"]

    async def legacy(
        self, token: str | None, method: str, params: dict[str, Any] | None = None, *, session: str | None = None
    ) -> httpx2.Response:
        """Send one message in a session as the older protocol has it."""
        own = {"mcp-protocol-version": LEGACY, **({"mcp-session-id": session} if session else {})}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return await self.http.post(self.url, json=body, headers=self.headers(token, **own))

    async def session(self, token: str) -> str:
        """Begin a session; return its id."""
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        answer = await self.legacy(token, "initialize", hello)
        assert answer.status_code == 200, answer.text
        return answer.headers["mcp-session-id"]


def message_in(answer: httpx2.Response) -> dict[str, Any]:
    """The last message of an answer, which may be a stream."""
    if answer.headers["content-type"].startswith("text/event-stream"):
        data = [line.removeprefix("data:") for line in answer.text.splitlines() if line.startswith("data: {")]
        return json.loads(data[-1])
    return answer.json()


def challenge_of(answer: httpx2.Response) -> dict[str, str]:
    """The parameters of a challenge."""
    scheme, _, rest = answer.headers["www-authenticate"].partition(" ")
    assert scheme == "Bearer"
    pairs = (one.partition("=") for one in rest.split('", ') if one)
    return {name.strip(", "): value.strip('"') for name, _equals, value in pairs}


@asynccontextmanager
async def serving(home: Path, *, sandboxed: bool = False, **variables: str) -> AsyncGenerator[Site]:
    """Serve with these settings; `PYEXEC_AUTH_DEVELOPMENT` when nothing is said about issuers."""
    port = int(variables.pop("PORT", "") or find_available_port())
    base = f"http://127.0.0.1:{port}"
    if "PYEXEC_AUTH_ISSUERS" not in variables and "PYEXEC_AUTH_POLICIES" not in variables:
        variables["PYEXEC_AUTH_DEVELOPMENT"] = "yes"
    work = home.parent / "work"
    work.mkdir(exist_ok=True)
    settings = load_settings(environment(home, variables), directory=work)
    ended = EndedUsers(StateFolder(home).ended_users)
    authorization = open_authorization(settings.authorization, f"{base}/mcp", ended=ended)
    assert authorization is not None
    services = LazyServices(settings)
    server = build_server(
        services,
        authorization.principal,
        settings.wait_seconds,
        tuple(TOOLSETS),
        sandboxed=sandboxed,
        auth=authorization.auth,
        checks=authorization.checks,
    )
    web = uvicorn.Server(uvicorn.Config(server.http_app(), port=port, log_config=None, lifespan="on"))
    try:
        async with anyio.create_task_group() as tasks, httpx2.AsyncClient(timeout=60) as http:
            tasks.start_soon(web.serve)
            await eventually(lambda: web.started)
            key = authorization.development_key
            yield Site(base=base, authorization=authorization, given_key=key, http=http, work=work, server=server)
            web.should_exit = True
    finally:
        services.close()
