"""What proxies say of requests that they forward: believed from those that are named, and from nobody else."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.helpers.over_http import BOTH, Server, headers, request, serve
from tests.helpers.waiting import eventually

PROXY = "127.0.0.2"
STRANGER = "127.0.0.3"
NAME = "pyexec.example.com"
ISSUER = "https://id.example.com"
CLIENT = "203.0.113.9"
BAD = {"directory": "/nonexistent", "script_content": "1", "use_uv": False}


@pytest.fixture(scope="module")
async def behind(module_home: Path) -> AsyncIterator[Server]:
    """A server behind a proxy."""
    options = ["--toolsets", "core,jobs", "--trusted-proxy", PROXY, "--allowed-host", NAME]
    env = {"PYEXEC_AUTH_DEVELOPMENT": "yes", "PYEXEC_AUTH_ISSUERS": ISSUER}
    async with serve(module_home, options=options, env=env) as server:
        yield server


def coming_from(server: Server, address: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=server.base, timeout=60, transport=httpx2.AsyncHTTPTransport(local_address=address)
    )


async def token_of(server: Server) -> str:
    said = await eventually(lambda: server.said().partition("A token to try it out with: ")[2].split())
    return f"Bearer {said[0]}"


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ([("X-Forwarded-For", CLIENT)], CLIENT),
        # What the client has made up stands before what the proxy has seen.
        ([("X-Forwarded-For", f"10.0.0.1, {PROXY}, {CLIENT}")], CLIENT),
        ([("X-Forwarded-For", "10.0.0.1"), ("X-Forwarded-For", CLIENT)], CLIENT),
        ([("X-Forwarded-For", f"{CLIENT}, {PROXY}")], CLIENT),
        ([("X-Forwarded-For", f"{CLIENT}:4711")], CLIENT),
        ([("X-Forwarded-For", f"::ffff:{CLIENT}")], CLIENT),
        ([("X-Forwarded-For", "[2001:db8::7]:4711")], "2001:db8::7"),
        ([("X-Forwarded-For", "fe80::1%<b>eth0")], "fe80::1"),
        ([("X-Forwarded-For", "")], PROXY),
        ([("X-Forwarded-For", "<script>alert(1)</script>")], None),
        ([("X-Forwarded-For", '","subject":"root')], None),
        ([("X-Forwarded-For", "unknown")], None),
        ([("X-Forwarded-For", "9" * 5000)], None),
        # These are nobody's whom we know.
        ([("Forwarded", f"for={CLIENT}"), ("X-Real-IP", CLIENT)], PROXY),
    ],
)
async def test_the_audit_log_has_the_address_that_the_proxy_saw(
    behind: Server, said: list[tuple[str, str]], written: str | None
) -> None:
    assert await _audited(behind, PROXY, said) == written


@pytest.mark.parametrize("address", ["127.0.0.1", STRANGER])
async def test_of_others_the_audit_log_has_their_own_address(behind: Server, address: str) -> None:
    said = [("X-Forwarded-For", CLIENT), ("Forwarded", f"for={CLIENT}"), ("X-Forwarded-Host", NAME)]
    assert await _audited(behind, address, said) == address


async def _audited(server: Server, address: str, said: list[tuple[str, str]]) -> str | None:
    told = headers("tools/call", "run_script_in_dir", Authorization=await token_of(server))
    body = request("tools/call", {"name": "run_script_in_dir", "arguments": BAD})
    async with coming_from(server, address) as http:
        answer = await http.post("/mcp", json=body, headers=[*told.items(), *said])
    assert "/nonexistent" in answer.text
    line = json.loads((server.home / "audit.jsonl").read_text().splitlines()[-1])
    assert (line["event"], line["subject"], line["client"]) == ("refused", "developer", "pyexec-development")
    return line.get("address")


@pytest.mark.parametrize("address", [PROXY, STRANGER])
@pytest.mark.parametrize("proto", ["https", "javascript", 'https", scope="admin'])
async def test_no_header_changes_where_clients_are_sent_for_tokens(behind: Server, address: str, proto: str) -> None:
    evil = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": proto,
        "X-Forwarded-Port": "1",
        "X-Forwarded-Prefix": "/evil",
        "X-Original-URL": "/evil",
        "Forwarded": "host=evil.example;proto=https",
    }
    where = f"{behind.base}/.well-known/oauth-protected-resource/mcp"
    async with coming_from(behind, address) as http:
        for path, told in (("/mcp", {"Accept": BOTH}), ("/executions/none/events", {})):
            method = "POST" if path == "/mcp" else "GET"
            refused = await http.request(method, path, headers={**told, **evil})
            assert refused.status_code == 401
            assert f'resource_metadata="{where}"' in refused.headers["www-authenticate"]
            assert "evil" not in str(refused.headers) + refused.text
        metadata = await http.get("/.well-known/oauth-protected-resource/mcp", headers=evil)
        assert metadata.json()["resource"] == behind.url
        assert metadata.json()["authorization_servers"] == [ISSUER]
        moved = await http.get("/healthz/", headers=evil)
        assert "evil" not in moved.headers.get("location", "")
        named = await http.get("/healthz", headers={"X-Forwarded-Host": NAME, "Host": "evil.example"})
        assert named.status_code == 403


@pytest.mark.parametrize(
    ("address", "proto", "status"),
    [
        (PROXY, "https", 401),
        (PROXY, "http", 403),
        (PROXY, "https, http", 403),
        (PROXY, "", 403),
        (STRANGER, "https", 403),
        ("127.0.0.1", "https", 403),
    ],
)
async def test_a_page_served_over_tls_by_the_proxy_is_our_own(
    behind: Server, address: str, proto: str, status: int
) -> None:
    told = {"Host": NAME, "Origin": f"https://{NAME}", "X-Forwarded-Proto": proto}
    async with coming_from(behind, address) as http:
        answer = await http.post("/mcp", json=request("tools/list"), headers={**headers("tools/list"), **told})
    assert answer.status_code == status
