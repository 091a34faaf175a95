"""What a client without the right token is told, over HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from pyexec.auth.development import DevelopmentKey
from pyexec.auth.scopes import OFFERED, RESOURCES, SCOPES, TOOLS
from tests.oauth.site import MODERN, Site, challenge_of, message_in, serving

METHODS = ["POST", "GET", "DELETE"]


@pytest.fixture(scope="module")
async def site(module_home: Path) -> AsyncIterator[Site]:
    async with serving(
        module_home, PYEXEC_AUTH_ISSUERS="http://127.0.0.1:9/tenant", PYEXEC_AUTH_DEVELOPMENT="yes"
    ) as made:
        yield made


@pytest.fixture(scope="module")
def key(site: Site) -> DevelopmentKey:
    return site.key


@pytest.mark.case("B144")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sent", [None, "Basic YWRhOnNlY3JldA==", "Bearer", "Bearer garbage", "bearer a.b.c"])
async def test_who_has_no_token_that_counts_is_told_where_to_get_one(site: Site, method: str, sent: str | None) -> None:
    headers = {**site.headers(None), **({} if sent is None else {"authorization": sent})}
    answer = await site.http.request(method, site.url, headers=headers)
    assert answer.status_code == 401
    challenge = challenge_of(answer)
    assert challenge["resource_metadata"] == f"{site.base}/.well-known/oauth-protected-resource/mcp"
    assert challenge["scope"] == "python:execute jobs:read"
    was_sent = sent is not None and sent.lower().startswith("bearer ")
    assert challenge.get("error") == ("invalid_token" if was_sent else None)


@pytest.mark.case("B145")
async def test_an_expired_token_is_answered_with_401_and_the_session_goes_on_with_a_new_one(
    site: Site, key: DevelopmentKey
) -> None:
    session = await site.session(key.token(site.url))
    answer = await site.legacy(key.token(site.url, seconds=-60), "tools/list", session=session)
    assert answer.status_code == 401
    assert challenge_of(answer)["error"] == "invalid_token"
    answer = await site.legacy(key.token(site.url), "tools/list", session=session)
    assert len(message_in(answer)["result"]["tools"]) > 20


@pytest.mark.case("B139")
@pytest.mark.case("B142")
@pytest.mark.case("B143")
async def test_the_challenge_leads_to_metadata_of_the_very_url_that_was_called(site: Site) -> None:
    challenge = challenge_of(await site.http.post(site.url, headers=site.headers(None)))
    for url in (challenge["resource_metadata"], f"{site.base}/.well-known/oauth-protected-resource"):
        answer = await site.http.get(url, headers={"origin": "https://page.example"})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "*"
        metadata = answer.json()
        assert metadata["resource"] == site.url
        assert metadata["authorization_servers"] == ["http://127.0.0.1:9/tenant"]
        assert metadata["scopes_supported"] == list(OFFERED)
        assert metadata["bearer_methods_supported"] == ["header"]
    elsewhere = await site.http.get(f"{site.base}/.well-known/oauth-protected-resource/other")
    assert elsewhere.status_code == 404


async def test_a_token_in_the_address_is_no_token(site: Site, key: DevelopmentKey) -> None:
    answer = await site.http.post(f"{site.url}?access_token={key.token(site.url)}", headers=site.headers(None))
    assert answer.status_code == 401


async def test_two_tokens_are_none(site: Site, key: DevelopmentKey) -> None:
    bearer = f"Bearer {key.token(site.url)}"
    headers = [*site.headers(None).items(), ("authorization", bearer), ("authorization", bearer)]
    assert (await site.http.post(site.url, headers=headers)).status_code == 401


async def test_when_an_issuer_cannot_be_asked_nobody_is_sent_away_to_sign_in_again(
    site: Site, key: DevelopmentKey
) -> None:
    token = site.signing("http://127.0.0.1:9/tenant").token()
    answer = await site.rpc(token, "tools/list")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert "www-authenticate" not in answer.headers


@pytest.mark.case("B144")
async def test_a_token_for_something_else_is_answered_with_all_that_is_needed(site: Site, key: DevelopmentKey) -> None:
    token = key.token(site.url, scopes=["jobs:read", "someone:elses"])
    run = {"name": "run_script_in_dir", "arguments": {"directory": "/tmp", "script_content": "1"}}
    session = await site.session(token)
    for answer in (
        await site.rpc(token, "tools/call", run),
        await site.legacy(token, "tools/call", run, session=session),
        await site.rpc(token, "tools/call", {**run, "name": "py_run_script_in_dir"}),
    ):
        assert answer.status_code == 403
        challenge = challenge_of(answer)
        assert challenge["error"] == "insufficient_scope"
        assert challenge["scope"] == "python:execute jobs:read"
        assert challenge["resource_metadata"] == f"{site.base}/.well-known/oauth-protected-resource/mcp"


async def test_what_writes_reads_and_the_admin_may_all(site: Site, key: DevelopmentKey) -> None:
    for granted in (["jobs:write"], ["admin"]):
        token = key.token(site.url, scopes=granted)
        answer = await site.rpc(token, "tools/call", {"name": "py_list_jobs", "arguments": {}})
        assert not message_in(answer)["result"].get("isError")
    assert (
        await site.rpc(key.token(site.url, scopes=["jobs:read"]), "tools/call", {"name": "kill_job", "arguments": {}})
    ).status_code == 403


async def test_tools_are_listed_whatever_the_token_covers(site: Site, key: DevelopmentKey) -> None:
    answer = await site.rpc(key.token(site.url, scopes=[]), "tools/list")
    assert len(message_in(answer)["result"]["tools"]) > 20


async def test_a_resource_needs_a_scope_too(site: Site, key: DevelopmentKey) -> None:
    answer = await site.rpc(key.token(site.url, scopes=["python:execute"]), "resources/read", {"uri": "job-stream://x"})
    assert answer.status_code == 403
    assert challenge_of(answer)["scope"] == "python:execute jobs:read"


async def test_a_message_that_says_something_else_in_its_headers_does_not_get_through(
    site: Site, key: DevelopmentKey
) -> None:
    token = key.token(site.url, scopes=["jobs:read"])
    run = {"name": "run_script_in_dir", "arguments": {"directory": "/tmp", "script_content": "1"}}
    for headers in ({"mcp-name": "py_list_jobs"}, {"mcp-method": "tools/list"}, {"mcp-name": "PY_list_jobs"}):
        answer = await site.rpc(token, "tools/call", run, **headers)
        assert answer.status_code in {400, 403}, answer.text
    answer = await site.rpc(token, "tools/call", run, **{"mcp-protocol-version": "2099-01-01"})
    assert answer.status_code in {400, 403}, answer.text


async def test_a_batch_is_looked_into(site: Site, key: DevelopmentKey) -> None:
    token = key.token(site.url, scopes=["jobs:read"])
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "kill_job", "arguments": {}}}]
    assert (await site.http.post(site.url, json=batch, headers=site.headers(token))).status_code == 403


async def test_a_tool_that_does_not_exist_is_answered_as_such(site: Site, key: DevelopmentKey) -> None:
    answer = await site.rpc(key.token(site.url, scopes=[]), "tools/call", {"name": "no_such_tool", "arguments": {}})
    assert "no_such_tool" in answer.text
    assert "scope" not in answer.text


async def test_every_tool_and_resource_has_a_scope(site: Site, key: DevelopmentKey) -> None:
    token = key.token(site.url)
    tools = message_in(await site.rpc(token, "tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools if TOOLS.get(tool["name"]) not in SCOPES] == []
    templates = message_in(await site.rpc(token, "resources/templates/list"))["result"]["resourceTemplates"]
    schemes = {template["uriTemplate"].partition(":")[0] for template in templates}
    assert {scheme for scheme in schemes if RESOURCES.get(scheme) not in SCOPES} == set()


async def test_a_request_that_is_too_large_is_not_read_to_its_end(site: Site, key: DevelopmentKey) -> None:
    host, port = site.base.removeprefix("http://").split(":")
    headers = {**site.headers(key.token(site.url)), "host": host, "content-length": str(33 * 1024 * 1024)}
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    async with await anyio.connect_tcp(host, int(port)) as connection:
        await connection.send("\r\n".join(lines).encode())
        assert (await connection.receive()).startswith(b"HTTP/1.1 413 ")


async def test_the_newest_protocol_is_what_these_tests_speak(site: Site, key: DevelopmentKey) -> None:
    answer = await site.rpc(key.token(site.url), "server/discover")
    assert MODERN in answer.text
