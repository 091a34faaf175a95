"""Rules that specifications state once and every endpoint has to keep."""

import base64
import json
import re

import pytest

from tests.idp.site import CALLBACK, ISSUER, MCP, SCOPE, Pkce, Site, came_back, payload, refused

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
POSTED = ("/token", "/revoke", "/introspect", "/register", "/device_authorization")


@pytest.mark.parametrize("path", POSTED)
def test_what_clients_post_to_is_not_to_be_got(shared: Site, path: str) -> None:
    answer = shared.http.get(f"{ISSUER}{path}?grant_type=authorization_code&token=x")
    assert answer.status_code == 405


def test_parameters_that_nobody_knows_are_ignored_and_empty_ones_are_none(shared: Site) -> None:
    client_id, pkce = shared.client(), Pkce()
    code = shared.code(client_id, pkce, unheard_of="1", nonce="", prompt="", max_age="")
    answer = shared.exchange(client_id, code, pkce, unheard_of="1", resource="", scope="")
    assert answer.status_code == 200
    assert payload(answer.json()["access_token"])["aud"] == MCP


def test_a_client_that_said_who_it_is_in_the_header_is_challenged_in_the_header(shared: Site) -> None:
    client_id = shared.own_client()
    for path in ("/token", "/introspect", "/revoke"):
        answer = shared.post(path, (client_id, "wrong"), token="x", grant_type="client_credentials")
        refused(answer, 401, "invalid_client")
        assert answer.headers["www-authenticate"].startswith("Basic")


def test_who_says_in_two_ways_who_it_is_gets_nothing(shared: Site) -> None:
    client_id, other, pkce = shared.own_client(), shared.client(), Pkce()
    code, auth = shared.code(client_id, pkce), (client_id, "a secret")
    refused(shared.exchange(client_id, code, pkce, auth=auth, client_id=other), 400, "invalid_request")
    refused(shared.exchange(client_id, code, pkce, auth=auth, client_secret="a secret"), 400, "invalid_request")
    assert shared.exchange(client_id, code, pkce, auth=auth).status_code == 200


@pytest.mark.parametrize("header", ["Basic", "Basic /w==", "Basic x", "Basic Og==", "Basic eDp5Og=="])
def test_a_header_that_cannot_be_read_is_refused(shared: Site, header: str) -> None:
    for path in ("/token", "/introspect", "/revoke"):
        form = {"token": "x", "grant_type": "client_credentials"}
        answer = shared.http.post(ISSUER + path, data=form, headers={"authorization": header})
        assert answer.status_code in {400, 401}
        assert answer.json()["error"] in {"invalid_request", "invalid_client"}


def test_every_answer_in_json_says_so_and_is_kept_by_nobody(site: Site) -> None:
    client_id, pkce = site.client(grant_types=["authorization_code", DEVICE_GRANT]), Pkce()
    tokens = site.exchange(client_id, site.code(client_id, pkce, scope=f"{SCOPE} openid"), pkce)
    for answer in (
        tokens,
        site.register(),
        site.userinfo(tokens.json()["access_token"]),
        site.post("/introspect", (site.own_client(), "a secret"), token="x"),
        site.post("/device_authorization", client_id=client_id),
        site.post("/token", grant_type="nonsense"),
    ):
        assert answer.headers["content-type"].partition(";")[0] == "application/json"
        assert answer.headers["cache-control"] == "no-store"


def test_nothing_that_is_authority_can_be_guessed(site: Site) -> None:
    client_id = site.client(grant_types=["authorization_code", "refresh_token", DEVICE_GRANT])
    shown = site.post("/device_authorization", client_id=client_id).json()
    tokens = site.tokens(client_id)
    secrets = [
        site.code(client_id, Pkce()),
        tokens["refresh_token"],
        site.refresh(client_id, tokens["refresh_token"]).json()["refresh_token"],
        shown["device_code"],
        site.register(token_endpoint_auth_method="client_secret_basic").json()["client_secret"],
    ]
    for one in secrets:
        # 43 letters of 64 are 256 bits; a code of Authlib's has 48.
        assert re.fullmatch(r"[A-Za-z0-9_-]{43,}", one), one
    assert len(set(secrets)) == len(secrets)
    assert re.fullmatch(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", shown["user_code"])


def test_every_redirect_is_one_after_which_a_browser_posts_nothing(site: Site) -> None:
    client_id, browser = site.client(), site.browser()
    site.authorize(browser, client_id, Pkce())
    answer = browser.sign_in()
    assert answer.status_code == 303  # A 307 would post the password to wherever it leads.
    browser.follow(answer)
    assert browser.submit(decision="allow").status_code == 303


@pytest.mark.case("B139")
@pytest.mark.parametrize("asked", [MCP, f"{MCP}/", "HTTPS://MCP.Example.com:443/mcp"])
def test_the_audience_is_the_url_of_the_register_however_it_was_written(shared: Site, asked: str) -> None:
    client_id, pkce = shared.client(), Pkce()
    code = shared.code(client_id, pkce, resource=asked)
    answer = shared.exchange(client_id, code, pkce, resource=asked)
    assert payload(answer.json()["access_token"])["aud"] == MCP


@pytest.mark.case("B140")
def test_the_issuer_is_written_in_one_way_everywhere(shared: Site) -> None:
    tokens = shared.tokens(scope=f"{SCOPE} openid")
    document = shared.http.get(f"{ISSUER}/.well-known/oauth-authorization-server").json()
    back = came_back(shared.authorize(shared.browser(), tokens["client_id"], Pkce(), prompt="none"))
    said = {document["issuer"], back["iss"], payload(tokens["access_token"])["iss"], payload(tokens["id_token"])["iss"]}
    assert said == {ISSUER}


def _forged(token: str, header: dict[str, str], signature: str) -> str:
    def part(values: dict[str, str]) -> str:
        return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=").decode()

    return f"{part(header)}.{token.split('.')[1]}.{signature}"


def test_a_token_that_somebody_else_signed_or_nobody_is_none(shared: Site) -> None:
    tokens = shared.tokens(scope="openid")
    own = tokens["access_token"]
    foreign = shared.tokens(scope="openid")["access_token"].split(".")[2]
    for header, signature in (
        ({"alg": "none", "typ": "at+jwt"}, ""),
        ({"alg": "HS256", "typ": "at+jwt"}, own.split(".")[2]),
        ({"alg": "ES256", "typ": "at+jwt"}, foreign),
    ):
        assert shared.userinfo(_forged(own, header, signature)).status_code == 401
    assert shared.userinfo(own).status_code == 200


def test_userinfo_is_given_for_a_get_and_a_post(shared: Site) -> None:
    token = shared.tokens(scope="openid")["access_token"]
    headers = {"authorization": f"Bearer {token}"}
    answers = [shared.http.request(method, f"{ISSUER}/userinfo", headers=headers).json() for method in ("GET", "POST")]
    assert answers[0] == answers[1]
    assert shared.http.get(f"{ISSUER}/userinfo?access_token={token}").status_code == 401


def test_a_device_that_asks_too_often_has_to_wait_longer_each_time(site: Site) -> None:
    client_id = site.client(grant_types=[DEVICE_GRANT], redirect_uris=[])
    code = site.post("/device_authorization", client_id=client_id).json()["device_code"]

    def asked() -> str:
        return site.post("/token", grant_type=DEVICE_GRANT, device_code=code, client_id=client_id).json()["error"]

    assert (asked(), asked()) == ("authorization_pending", "slow_down")
    site.clock.advance(6)
    assert asked() == "slow_down"  # Five seconds more than the five of the beginning.
    site.clock.advance(16)
    assert asked() == "authorization_pending"


def test_a_redirect_that_was_registered_with_a_query_keeps_it(shared: Site) -> None:
    callback = f"{CALLBACK}?tenant=7"
    client_id = shared.client(redirect_uris=[callback])
    answer = shared.authorize(shared.browser(), client_id, Pkce(), redirect_uri=callback, prompt="none")
    assert answer.headers["location"].startswith(f"{callback}&")
