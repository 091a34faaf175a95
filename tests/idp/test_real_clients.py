"""Clients and referees that nobody here wrote, against the real server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastmcp import Client
from fastmcp.utilities.http import find_available_port

from tests.idp.clicking import ClickingOAuth
from tests.idp.guarded import guarded
from tests.idp.javascript import (
    PACKAGES,
    SERVER_ID,
    SERVER_SECRET,
    another_provider,
    needs_packages,
    run,
    run_and_sign_in,
)
from tests.idp.served import Operator, operator
from tests.idp.site import PASSWORD, SCOPE

RESOURCE = "https://strict.example/mcp"

OTHERWISE_ELSEWHERE = {
    "RFC 7662: introspection": "does not keep its JWT access tokens, and so cannot be asked about them",
    "RFC 9700: the replay ends the access token": "the same: a JWT access token of it lives until it expires",
    "RFC 7009: revocation ends the family": "the same",
    "OAuth 2.1: a lost answer is given again": "takes the second use of a refresh token for a theft at once",
    "RFC 6749: an unknown scope": "leaves unknown scopes out, and refuses once none remains (section 3.3 allows both)",
    "RFC 6749: an unknown response type": "answers in the fragment, as the implicit grant would, which we do not have",
}
"""In what npm's oidc-provider answers otherwise than we do, and why."""


@pytest.fixture(scope="module")
def idp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    made = operator(tmp_path_factory.mktemp("idp"))
    made.ok("users", "add", "ada", "--password-stdin", stdin=f"{PASSWORD}\n")
    made.ok("resources", "add", RESOURCE, "--scope", "strict:read=Read", "--scope", "strict:write=Write")
    with made.serving():
        yield made


@pytest.fixture(scope="module")
def url(idp: Operator) -> Iterator[str]:
    """The URL of an MCP server that knows the issuer only."""
    with guarded(idp) as made:
        yield made


@pytest.mark.filterwarnings("ignore:Using in-memory token storage")
@pytest.mark.exhaustive
async def test_an_mcp_client_signs_in_at_a_server_that_knows_the_issuer_only(idp: Operator, url: str) -> None:
    async with Client(url, auth=ClickingOAuth(url)) as client:
        found = (await client.call_tool("whoami")).data
    assert set(found["scopes"]) == {SCOPE, "offline_access"}  # The client asks for the second by itself.
    assert found["subject"] in idp.ok("users", "list")
    assert "registered" in idp.ok("audit", "--limit", "20")


@pytest.mark.filterwarnings("ignore:Using in-memory token storage")
async def test_a_server_verifies_tokens_without_a_call_to_the_provider(idp: Operator, url: str) -> None:
    async with Client(url, auth=ClickingOAuth(url)) as client:
        before = (await client.call_tool("whoami")).data
        with idp.standing_still():
            assert [(await client.call_tool("whoami")).data for _call in range(5)] == [before] * 5


@needs_packages
@pytest.mark.exhaustive
def test_mcp_remote_signs_in_and_lists_the_tools(idp: Operator, url: str, tmp_path: Path) -> None:
    printed = run_and_sign_in(
        idp.issuer,
        PACKAGES / "mcp-remote" / "dist" / "client.js",
        url,
        str(find_available_port()),
        "--allow-http",
        until='"name": "whoami"',
        HOME=str(tmp_path),
        MCP_REMOTE_CONFIG_DIR=str(tmp_path),
    )
    assert "Connected successfully!" in printed


@needs_packages
@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.exhaustive
def test_the_inspector_signs_in_and_calls_a_tool(idp: Operator, url: str, tmp_path: Path, era: str) -> None:
    printed = run_and_sign_in(
        idp.issuer,
        PACKAGES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js",
        *("--cli", "--protocol-era", era, "--server-url", url, "--transport", "http"),
        *("--method", "tools/call", "--tool-name", "whoami", "--format", "json"),
        HOME=str(tmp_path),
        MCP_CATALOG_PATH=str(tmp_path / "catalogue.json"),
        MCP_AUTO_OPEN_ENABLED="true",
        MCP_INSPECTOR_SECRET_STORE="memory",
        MCP_OAUTH_CALLBACK_URL=f"http://127.0.0.1:{find_available_port()}/oauth/callback",
    )
    found = json.loads(printed.splitlines()[-1])["result"]["structuredContent"]
    assert found["subject"] in idp.ok("users", "list")
    assert SCOPE in found["scopes"]


@needs_packages
def test_the_conformance_scenarios_of_an_authorization_server_pass(idp: Operator, tmp_path: Path) -> None:
    said = idp.ok("clients", "add", "Conformance", "--public", "--redirect-uri", "http://127.0.0.1:1/callback")
    printed = run_and_sign_in(
        idp.issuer,
        PACKAGES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js",
        *("authorization", "--url", idp.issuer, "--client-id", said.split()[1], "--resource", RESOURCE),
        *("--port", str(find_available_port()), "--output-dir", str(tmp_path)),
    )
    assert "Total: 3 passed, 0 failed" in printed
    results = [one for path in sorted(tmp_path.rglob("checks.json")) for one in json.loads(path.read_text("utf-8"))]
    assert {one["status"] for one in results} == {"SUCCESS"}


def findings(issuer: str, server_id: str, secret: str) -> dict[str, str | None]:
    """Return what a strict client has to object to, by what it looked at."""
    printed = run(
        "strict_client.mjs",
        ISSUER=issuer,
        SERVER_ID=server_id,
        SERVER_SECRET=secret,
        RESOURCE=RESOURCE,
        USER_PASSWORD=PASSWORD,
    )
    return dict(json.loads(printed))


@needs_packages
def test_a_strict_client_finds_nothing_to_object_to(idp: Operator) -> None:
    said = idp.ok("clients", "add", "Behind", "--introspects", RESOURCE).split()
    found = findings(idp.issuer, said[1], said[-1])
    assert {name: wrong for name, wrong in found.items() if wrong is not None} == {}
    assert len(found) >= 30


@needs_packages
def test_a_second_provider_is_found_to_differ_only_where_we_know_why() -> None:
    with another_provider({RESOURCE: {"scope": "strict:read strict:write", "form": "jwt"}}) as issuer:
        found = findings(issuer, SERVER_ID, SERVER_SECRET)
    assert {name for name, wrong in found.items() if wrong is not None} == OTHERWISE_ELSEWHERE.keys()
