"""The server trusts an issuer that nobody here wrote: npm's oidc-provider."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from anyio.to_thread import run_sync
from fastmcp import Client
from fastmcp.utilities.http import find_available_port
from joserfc.jwk import ECKey

from pyexec.auth import issuers
from tests.helpers.homes import temporary_home
from tests.idp.javascript import SERVER_ID, SERVER_SECRET, another_provider, needs_packages
from tests.idp.site import Forms, Pkce
from tests.oauth.signing_in import ClickingOAuth
from tests.oauth.site import Site, message_in, serving

pytestmark = [needs_packages, pytest.mark.filterwarnings("ignore:Using in-memory token storage")]

CALLBACK = "http://127.0.0.1:4711/callback"
SCOPE = "python:execute jobs:read jobs:write"
ELSEWHERE = "https://elsewhere.example/mcp"


def new_key(kid: str) -> dict[str, Any]:
    key = ECKey.generate_key("P-256", {"kid": kid, "use": "sig", "alg": "ES256"}, private=True)
    return dict(key.as_dict(private=True))


@dataclass(frozen=True)
class Town:
    """An issuer, and where two servers are that trust it: by the signatures of its tokens, and by asking about them."""

    issuer: str
    jwt_port: int
    opaque_port: int

    @property
    def resources(self) -> dict[str, dict[str, str]]:
        forms = {_url(self.jwt_port): "jwt", _url(self.opaque_port): "opaque", ELSEWHERE: "jwt"}
        return {url: {"scope": SCOPE, "form": form} for url, form in forms.items()}

    @property
    def port(self) -> int:
        return int(self.issuer.rpartition(":")[2])


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module")
def town() -> Town:
    ports = [find_available_port() for _number in range(3)]
    return Town(f"http://127.0.0.1:{ports[0]}", ports[1], ports[2])


class Provider:
    """The issuer, which can be started anew with other keys, as an operator rotates them."""

    def __init__(self, town: Town) -> None:
        self._town = town
        self._running = ExitStack()

    def start(self, *keys: dict[str, Any]) -> None:
        """Start it; the first of its keys signs."""
        self.close()
        self._running.enter_context(another_provider(self._town.resources, keys=keys, port=self._town.port))

    def close(self) -> None:
        """End it."""
        self._running.close()


FIRST, SECOND, THIRD = (new_key(name) for name in ("first", "second", "third"))


@pytest.fixture(scope="module")
def provider(town: Town) -> Iterator[Provider]:
    made = Provider(town)
    made.start(FIRST)
    yield made
    made.close()


@pytest.fixture
def issuer(town: Town, provider: Provider) -> str:
    return town.issuer


@pytest.fixture(scope="module")
async def signed(town: Town, module_home: Path) -> AsyncIterator[Site]:
    """A server that goes by signatures."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(issuers, "AGAIN_SECONDS", 0.0)
        patched.setattr(issuers, "FAILED_SECONDS", 0.0)
        async with serving(module_home, PORT=str(town.jwt_port), PYEXEC_AUTH_ISSUERS=town.issuer) as site:
            yield site


@pytest.fixture(scope="module")
async def asking(town: Town) -> AsyncIterator[Site]:
    """A server that asks about each token."""
    with temporary_home() as home:
        async with serving(
            home,
            PORT=str(town.opaque_port),
            PYEXEC_AUTH_ISSUERS=town.issuer,
            PYEXEC_AUTH_REVOCATION_SECONDS="0",
            PYEXEC_AUTH_INTROSPECTION_CLIENT=SERVER_ID,
            PYEXEC_AUTH_INTROSPECTION_SECRET=SERVER_SECRET,
        ) as site:
            yield site


def click(authorization_url: str) -> str:
    """Sign in and allow; return where the browser is sent at the end."""
    with httpx2.Client() as browser:
        answer = browser.get(authorization_url)
        for _step in range(12):
            if location := answer.headers.get("location"):
                url = str(httpx2.URL(str(answer.url)).join(location))
                if "code=" in url or "error=" in url:
                    return url
                answer = browser.get(url)
            else:
                action, fields = Forms(answer.text).forms[0]
                answer = browser.post(action, data={**fields, "login": "ada", "password": "any"})
    raise AssertionError("it never leads back")


@dataclass
class Grant:
    """A token, and what was needed to get it."""

    token: str
    client_id: str
    metadata: dict[str, Any]


def sign_in(issuer: str, resource: str, scope: str = SCOPE) -> Grant:
    pkce = Pkce()
    with httpx2.Client() as http:
        metadata = http.get(f"{issuer}/.well-known/openid-configuration").json()
        asked = {
            "redirect_uris": [CALLBACK],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "grant_types": ["authorization_code"],
        }
        client_id = http.post(metadata["registration_endpoint"], json=asked).json()["client_id"]
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": CALLBACK,
            "scope": scope,
            "resource": resource,
            "code_challenge": pkce.challenge,
            "code_challenge_method": "S256",
        }
        back = click(f"{metadata['authorization_endpoint']}?{urlencode(query)}")
        form = {
            "grant_type": "authorization_code",
            "code": parse_qs(urlsplit(back).query)["code"][0],
            "redirect_uri": CALLBACK,
            "client_id": client_id,
            "code_verifier": pkce.verifier,
            "resource": resource,
        }
        answer = http.post(metadata["token_endpoint"], data=form)
        assert answer.status_code == 200, answer.text
        return Grant(answer.json()["access_token"], client_id, metadata)


async def status(site: Site, token: str) -> int:
    return (await site.rpc(token, "tools/list")).status_code


async def test_a_client_signs_in_there_and_calls_a_tool(issuer: str, signed: Site) -> None:
    oauth = ClickingOAuth(signed.url, click=click)
    async with Client(signed.url, auth=oauth) as client:
        given = {"directory": str(signed.work), "script_content": "print('ran')", "use_uv": False, "wait_seconds": 100}
        done = await client.call_tool("run_script_in_dir", given)
    assert (done.structured_content or {})["stdout"] == "ran\n"
    assert [one >= {"python:execute", "jobs:read"} for one in oauth.asked] == [True]


async def test_a_jwt_counts_where_it_is_for_and_nowhere_else(issuer: str, signed: Site, asking: Site) -> None:
    here = await run_sync(sign_in, issuer, signed.url)
    elsewhere = await run_sync(sign_in, issuer, ELSEWHERE)
    assert here.token.count(".") == elsewhere.token.count(".") == 2
    assert [await status(signed, one.token) for one in (here, elsewhere)] == [200, 401]
    assert await status(asking, here.token) == 401
    weak = await run_sync(sign_in, issuer, signed.url, "jobs:read")
    run = {"name": "run_script_in_dir", "arguments": {"directory": "/tmp", "script_content": "1"}}
    refused = await signed.rpc(weak.token, "tools/call", run)
    assert refused.status_code == 403
    assert 'scope="python:execute jobs:read"' in refused.headers["www-authenticate"]


async def test_an_opaque_token_counts_where_it_is_for_until_it_is_revoked(
    issuer: str, signed: Site, asking: Site
) -> None:
    grant = await run_sync(sign_in, issuer, asking.url)
    assert "." not in grant.token
    answer = await asking.rpc(grant.token, "tools/call", {"name": "py_list_jobs", "arguments": {}})
    assert message_in(answer)["result"]["structuredContent"] == {"jobs": [], "total": 0}
    assert await status(signed, grant.token) == 401
    async with httpx2.AsyncClient() as http:
        form = {"token": grant.token, "client_id": grant.client_id}
        assert (await http.post(grant.metadata["revocation_endpoint"], data=form)).status_code == 200
    assert await status(asking, grant.token) == 401


async def test_keys_that_come_are_found_and_those_that_go_no_longer_count(
    issuer: str, provider: Provider, signed: Site
) -> None:
    """Goes last: the keys are others afterwards."""
    tokens: list[str] = []
    statuses: list[list[int]] = []
    for keys in ((), (SECOND, FIRST), (THIRD, SECOND)):
        if keys:
            provider.start(*keys)
        tokens.append((await run_sync(sign_in, issuer, signed.url)).token)
        # The newest first: a key that is not known has all of them asked for again.
        statuses.append([await status(signed, one) for one in reversed(tokens)])
    assert statuses == [[200], [200, 200], [200, 200, 401]]
