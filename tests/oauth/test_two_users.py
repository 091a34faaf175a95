"""Who asks is a matter of each request, not of the connection or the session it comes on."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from pyexec.auth.development import NAME
from pyexec.domain.principals import Principal
from tests.oauth.site import Site, message_in, serving


@pytest.fixture(scope="module")
async def site(module_home: Path) -> AsyncIterator[Site]:
    async with serving(module_home) as made:
        yield made


def token(site: Site, who: str, **more: Any) -> str:
    return site.key.token(site.url, subject=who, **more)


async def scripts_of(site: Site, bearer: str) -> list[str]:
    found = await site.call(bearer, "py_list_scripts")
    return [script["name"] for script in found["structuredContent"]["scripts"]]


async def test_two_users_on_one_connection_are_two(site: Site) -> None:
    """The client keeps one connection open, and both send over it."""
    for who in ("ada", "bob", "ada"):
        saved = await site.call(
            token(site, who), "save_script", script_name=f"of-{who}", source="print(1)", overwrite=True
        )
        assert not saved.get("isError"), saved
    assert await scripts_of(site, token(site, "ada")) == ["of-ada"]
    assert await scripts_of(site, token(site, "bob")) == ["of-bob"]
    assert await scripts_of(site, token(site, "eve")) == []


async def test_a_session_of_one_user_is_unknown_to_another(site: Site) -> None:
    ada, bob = token(site, "ada"), token(site, "bob")
    session = await site.session(ada)
    own = await site.legacy(ada, "tools/list", session=session)
    foreign = await site.legacy(bob, "tools/list", session=session)
    unknown = await site.legacy(bob, "tools/list", session="0" * 32)
    assert own.status_code == 200
    assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)
    assert foreign.status_code == 404
    ended = await site.http.delete(site.url, headers=site.headers(bob, **{"mcp-session-id": session}))
    assert ended.status_code == 404
    assert (await site.legacy(ada, "tools/list", session=session)).status_code == 200


async def test_users_who_call_at_once_do_not_mix(site: Site) -> None:
    found: dict[str, set[str]] = {}
    sessions = {who: await site.session(token(site, who)) for who in ("u0", "u1", "u2")}

    async def work(who: str) -> None:
        for number in range(4):
            arguments = {"script_name": f"{who}-{number}", "source": "1"}
            call = {"name": "save_script", "arguments": arguments}
            answer = await site.legacy(token(site, who), "tools/call", call, session=sessions[who])
            assert not message_in(answer)["result"].get("isError")
        found[who] = set(await scripts_of(site, token(site, who)))

    async with anyio.create_task_group() as tasks:
        for who in sessions:
            tasks.start_soon(work, who)
    assert found == {who: {f"{who}-{number}" for number in range(4)} for who in sessions}


async def test_a_session_goes_by_what_the_latest_token_covers(site: Site) -> None:
    session = await site.session(token(site, "ada"))
    listing = {"name": "py_list_scripts", "arguments": {}}
    weak = token(site, "ada", scopes=["jobs:read"])
    assert (await site.legacy(weak, "tools/call", listing, session=session)).status_code == 403
    assert (await site.legacy(token(site, "ada"), "tools/call", listing, session=session)).status_code == 200


async def test_one_person_with_two_clients_is_one(site: Site) -> None:
    await site.call(token(site, "cat", client="one"), "save_script", script_name="mine", source="1")
    assert await scripts_of(site, token(site, "cat", client="two")) == ["mine"]


def test_no_user_is_the_user_of_this_machine() -> None:
    assert not Principal(issuer=NAME, subject="local").key.startswith("local|")
