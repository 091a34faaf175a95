"""What becomes of things when a token is revoked, at a server that asks the issuer."""

import json
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx2
import pytest

from pyexec.auth import issuers
from tests.helpers.commands import Command
from tests.helpers.waiting import eventually
from tests.idp.served import click_through
from tests.idp.site import Pkce
from tests.oauth.conftest import Guarded
from tests.oauth.site import message_in

CALLBACK = "http://127.0.0.1:4711/callback"


async def a_token(guarded: Guarded, scope: str) -> tuple[str, str]:
    """Sign ada in with a client of its own; return the token and the client's id."""
    return await anyio.to_thread.run_sync(_sign_in, guarded, scope)


def _sign_in(guarded: Guarded, scope: str) -> tuple[str, str]:
    issuer, pkce = guarded.idp.issuer, Pkce()
    with httpx2.Client() as http:
        metadata = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}
        client_id = http.post(f"{issuer}/register", json=metadata).json()["client_id"]
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": CALLBACK,
            "scope": scope,
            "resource": guarded.site.url,
            "code_challenge": pkce.challenge,
            "code_challenge_method": "S256",
        }
        back = click_through(f"{issuer}/authorize?{urlencode(query)}")
        code = httpx2.URL(back).params["code"]
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "client_id": client_id,
            "code_verifier": pkce.verifier,
        }
        return http.post(f"{issuer}/token", data=form).json()["access_token"], client_id


async def revoke(guarded: Guarded, token: str, client_id: str) -> None:
    async with httpx2.AsyncClient() as http:
        answer = await http.post(f"{guarded.idp.issuer}/revoke", data={"token": token, "client_id": client_id})
        assert answer.status_code == 200, answer.text


async def test_a_revoked_token_no_longer_counts(guarded: Guarded) -> None:
    site = guarded.site
    token, client_id = await a_token(guarded, "jobs:read")
    assert (await site.rpc(token, "tools/list")).status_code == 200
    await revoke(guarded, token, client_id)

    async def refused() -> bool:
        return (await site.rpc(token, "tools/list")).status_code == 401

    await eventually(refused)


async def test_an_open_stream_ends_when_its_token_is_revoked(guarded: Guarded) -> None:
    site = guarded.site
    token, client_id = await a_token(guarded, "jobs:read")
    session = await site.session(token)
    headers = site.headers(token, **{"mcp-session-id": session})
    async with site.http.stream("GET", site.url, headers=headers) as stream:
        assert stream.status_code == 200
        await revoke(guarded, token, client_id)
        with anyio.fail_after(60):
            async for _part in stream.aiter_raw():
                pass


async def test_what_runs_goes_on_when_the_token_is_revoked_and_is_there_for_the_next_one(guarded: Guarded) -> None:
    site = guarded.site
    token, client_id = await a_token(guarded, "python:execute jobs:read")
    go = site.work / "go"
    source = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nprint('done')\n"
    arguments = {"directory": str(site.work), "script_content": source, "use_uv": False, "wait_seconds": 100}
    answers: list[httpx2.Response] = []

    async def run() -> None:
        answers.append(await site.rpc(token, "tools/call", {"name": "run_script_in_dir", "arguments": arguments}))

    async def running() -> dict[str, Any] | None:
        answer = await site.rpc(other, "tools/call", {"name": "list_running_jobs", "arguments": {}})
        found = message_in(answer)["result"]["structuredContent"]["result"]
        return found[0] if found and found[0]["status"] == "running" else None

    other, _client = await a_token(guarded, "jobs:read")

    async def running_job() -> str:
        found = await eventually(running)
        assert found is not None
        return found["job_id"]

    job_id = ""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        job_id = await running_job()
        await revoke(guarded, token, client_id)
        await eventually(lambda: answers, what="the end of the call")
    assert "done" not in answers[0].text
    assert await running() is not None
    go.touch()

    async def ended() -> bool:
        found = await site.call(other, "py_job_status", job_id=job_id)
        return "done" in json.dumps(found) and found["structuredContent"]["job"]["status"] == "completed"

    await eventually(ended)


async def test_a_new_key_of_the_issuer_is_found_and_what_a_withdrawn_one_signed_no_longer_counts(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuers, "AGAIN_SECONDS", 0.0)
    before, _client_id = await a_token(guarded, "jobs:read")
    assert (await guarded.site.rpc(before, "tools/list")).status_code == 200
    guarded.idp.ok("keys", "rotate", "--now")

    async def signed_by_another() -> str | None:
        token, _client_id = await a_token(guarded, "jobs:read")
        return token if token.partition(".")[0] != before.partition(".")[0] else None

    after = await eventually(signed_by_another)
    assert after is not None
    assert [(await guarded.site.rpc(one, "tools/list")).status_code for one in (after, before)] == [200, 401]


async def test_ending_a_user_ends_what_they_run_and_their_tokens_until_they_are_let_in_again(
    guarded: Guarded,
) -> None:
    site = guarded.site
    token, _client = await a_token(guarded, "python:execute jobs:read")
    arguments = {"directory": str(site.work), "script_content": "import time; time.sleep(600)", "wait_seconds": 0}
    job = (await site.call(token, "run_script_in_dir", use_uv=False, **arguments))["structuredContent"]["job_id"]
    (subject,) = [line.split()[1] for line in guarded.idp.ok("users", "list").splitlines() if line.startswith("ada\t")]
    command = Command(site.work.parent / "home", site.work)
    guarded.idp.ok("users", "disable", "ada")
    try:
        ended = ("users", "end", subject, "--issuer", guarded.idp.issuer, "--json")
        told = json.loads(await anyio.to_thread.run_sync(command.ok, *ended))
        assert (told["subject"], told["executions"]) == (subject, 1)
    finally:
        guarded.idp.ok("users", "enable", "ada")
    assert (await site.rpc(token, "tools/list")).status_code == 401

    newer, _client = await a_token(guarded, "python:execute jobs:read")

    found = (await site.call(newer, "py_job_status", job_id=job))["structuredContent"]["job"]
    assert (found["status"], found["error"]) == (
        "cancelled",
        "It was ended: its user was ended by the operator. It was ended with SIGKILL.",
    )
    line = (site.work.parent / "home" / "audit.jsonl").read_text().splitlines()[-1]
    assert (json.loads(line)["event"], json.loads(line)["subject"]) == ("user_ended", subject)


async def test_a_user_who_is_disabled_is_out(guarded: Guarded) -> None:
    token, _client_id = await a_token(guarded, "jobs:read")
    assert (await guarded.site.rpc(token, "tools/list")).status_code == 200
    guarded.idp.ok("users", "disable", "ada")
    try:

        async def refused() -> bool:
            return (await guarded.site.rpc(token, "tools/list")).status_code == 401

        await eventually(refused)
    finally:
        guarded.idp.ok("users", "enable", "ada")
