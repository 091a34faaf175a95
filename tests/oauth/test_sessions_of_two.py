"""Sessions of two users in sandboxes, over HTTP."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.oauth.site import Site, serving
from tests.walls.bubblewrap import SERVER, share_environments

pytestmark = [pytest.mark.needs_uv, pytest.mark.root]


@pytest.fixture(scope="module")
async def site(module_home: Path, pytestconfig: pytest.Config) -> AsyncIterator[Site]:
    share_environments(module_home, pytestconfig)
    async with serving(module_home, sandboxed=True, **SERVER) as made:
        yield made


async def execute(site: Site, who: str, code: str) -> dict[str, Any]:
    token = site.key.token(site.url, subject=who)
    found = await site.call(token, "execute_python", code=code, session_id="work", wait_seconds=250)
    return found["structuredContent"]


@pytest.mark.exhaustive
async def test_a_session_is_unknown_to_everybody_else(site: Site) -> None:
    assert (await execute(site, "ada", "x = 'of ada'; open('kept', 'w').write(x); x"))["status"] == "completed"
    bob = site.key.token(site.url, subject="bob")
    assert "work" not in json.dumps(await site.call(bob, "list_sessions"))
    for tool in ("session_info", "interrupt_session", "restart_session", "close_session"):
        theirs, nobodys = [
            json.dumps(await site.call(bob, tool, session_id=name)).replace(name, "<name>") for name in ("work", "none")
        ]
        assert theirs == nobodys, tool
        assert '"isError": true' in theirs
    own = await execute(site, "bob", "import os; print('x' in globals(), os.listdir())")
    assert own["stdout"] == "False []\n"
    assert (await execute(site, "ada", "print(x)"))["stdout"] == "of ada\n"
