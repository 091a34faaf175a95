"""Registration, revocation, introspection, userinfo, clients for themselves."""

from typing import Any

import pytest

from tests.idp.site import CALLBACK, ISSUER, MCP, OTHER, SCOPE, Pkce, Site, payload, refused


def introspect(site: Site, client: str, token: str) -> dict[str, Any]:
    answer = site.post("/introspect", (client, "a secret"), token=token)
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.case("B161")
def test_registration_answers_with_what_was_registered(shared: Site) -> None:
    uris = ["https://app.example/cb", "http://localhost:3000/cb?x=1", CALLBACK]
    answer = shared.register(redirect_uris=uris, scope=SCOPE, client_uri="https://app.example")
    body = answer.json()
    assert answer.status_code == 201
    assert body["redirect_uris"] == uris
    assert body["grant_types"] == ["authorization_code", "refresh_token"]
    assert (body["token_endpoint_auth_method"], body["client_name"], body["scope"]) == ("none", "A test", SCOPE)
    assert "client_secret" not in body


@pytest.mark.case("B148")
def test_a_loopback_redirect_is_registered(shared: Site) -> None:
    for uri in ("http://localhost:19876/callback", "http://127.0.0.1/callback", "http://[::1]:1/callback"):
        assert shared.register(redirect_uris=[uri]).status_code == 201


def test_a_confidential_client_gets_a_secret_once(site: Site) -> None:
    body = site.register(token_endpoint_auth_method="client_secret_post").json()
    assert len(body["client_secret"]) == 43
    assert body["client_secret_expires_at"] == 0


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": "https://app.example/cb"}, "invalid_redirect_uri"),
        ({"redirect_uris": [1]}, "invalid_redirect_uri"),
        ({"redirect_uris": [CALLBACK] * 21}, "invalid_redirect_uri"),
        ({"grant_types": ["implicit"]}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata"),
        ({"client_name": 1}, "invalid_client_metadata"),
        ({"client_uri": "javascript:alert(1)"}, "invalid_client_metadata"),
        ({"scope": ["a"]}, "invalid_client_metadata"),
        ({"software_statement": "ey"}, "invalid_software_statement"),
        ({"post_logout_redirect_uris": ["http://evil.example"]}, "invalid_redirect_uri"),
    ],
    ids=str,
)
def test_metadata_that_cannot_be_accepted_are_refused(shared: Site, changes: dict[str, Any], error: str) -> None:
    refused(shared.register(**changes), 400, error)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b"[" * 60_000, b'{"a":' * 9000])
def test_a_body_that_is_no_object_is_refused(shared: Site, body: bytes) -> None:
    refused(shared.http.post(f"{ISSUER}/register", content=body), 400, "invalid_client_metadata")


def test_a_body_that_is_too_large_is_refused(shared: Site) -> None:
    for path in ("/register", "/token", "/sign-in"):
        assert shared.http.post(ISSUER + path, content=b"x" * 70_000).status_code == 413


def test_a_form_that_cannot_be_read_is_refused(shared: Site) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    for body in (b"a=%ff", b"\xff=1", b"&".join(b"a=1" for _ in range(200))):
        refused(shared.http.post(f"{ISSUER}/token", content=body, headers=form), 400, "invalid_request")


def test_a_client_that_never_got_a_token_is_forgotten_after_a_week(site: Site) -> None:
    from pyexec_idp.stores.housekeeping import clean

    unused, used = site.client(), site.tokens()["client_id"]
    site.clock.advance(8 * 86400)
    clean(site.parts.database, site.clock(), site.settings.lifetimes, site.settings.bounds)
    assert site.parts.clients.get(unused) is None
    assert site.parts.clients.get(used) is not None


def test_a_server_asks_about_tokens_that_are_for_it_and_no_others(site: Site) -> None:
    server = site.own_client(introspects=(MCP,), grant_types=())
    stranger = site.own_client(introspects=(OTHER,), grant_types=())
    tokens = site.tokens()
    found = introspect(site, server, tokens["access_token"])
    assert found["active"] is True
    assert (found["aud"], found["scope"], found["client_id"]) == (MCP, SCOPE, tokens["client_id"])
    assert introspect(site, stranger, tokens["access_token"]) == {"active": False}
    assert introspect(site, server, tokens["refresh_token"]) == {"active": False}
    assert introspect(site, server, "nonsense") == {"active": False}
    site.clock.advance(901)
    assert introspect(site, server, tokens["access_token"]) == {"active": False}


def test_nobody_asks_about_tokens_without_a_secret(site: Site) -> None:
    tokens = site.tokens()
    refused(
        site.post("/introspect", token=tokens["access_token"], client_id=tokens["client_id"]), 401, "invalid_client"
    )
    refused(site.post("/introspect", ("x", "y"), token="z"), 401, "invalid_client")


def test_a_revoked_refresh_token_takes_its_family_with_it(site: Site) -> None:
    server, tokens = site.own_client(introspects=(MCP,), grant_types=()), site.tokens()
    client_id = tokens["client_id"]
    answer = site.post("/revoke", token=tokens["refresh_token"], client_id=client_id, token_type_hint="odd")
    assert answer.status_code == 200
    refused(site.refresh(client_id, tokens["refresh_token"]), 400, "invalid_grant")
    assert introspect(site, server, tokens["access_token"]) == {"active": False}


def test_a_revoked_access_token_ends_alone(site: Site) -> None:
    tokens = site.tokens(scope=f"{SCOPE} openid")
    client_id = tokens["client_id"]
    assert site.post("/revoke", token=tokens["access_token"], client_id=client_id).status_code == 200
    assert site.userinfo(tokens["access_token"]).status_code == 401
    assert site.refresh(client_id, tokens["refresh_token"]).status_code == 200


def test_revoking_what_is_not_there_is_fine_and_what_another_has_is_not(site: Site) -> None:
    tokens, other = site.tokens(), site.client()
    assert site.post("/revoke", token="unknown", client_id=other).status_code == 200
    refused(site.post("/revoke", token=tokens["refresh_token"], client_id=other), 400, "invalid_grant")
    refused(site.post("/revoke", client_id=other), 400, "invalid_request")
    assert site.refresh(tokens["client_id"], tokens["refresh_token"]).status_code == 200


def test_an_id_token_says_who_signed_in_when_and_for_whom(site: Site) -> None:
    tokens = site.tokens(scope="openid profile email", resource=None, nonce="n-1")
    claims = payload(tokens["id_token"])
    assert (claims["iss"], claims["aud"], claims["nonce"]) == (ISSUER, tokens["client_id"], "n-1")
    assert (claims["name"], claims["email"], claims["preferred_username"]) == ("Ada", "ada@example.com", "ada")
    assert claims["auth_time"] == int(site.clock())
    assert claims["exp"] - claims["iat"] == 900
    assert "at_hash" in claims
    assert payload(tokens["access_token"])["aud"] == ISSUER
    found = site.userinfo(tokens["access_token"]).json()
    assert found == {key: claims[key] for key in ("sub", "name", "preferred_username", "email")}


def test_userinfo_says_no_more_than_the_scopes_allow(site: Site) -> None:
    assert site.userinfo(site.tokens(scope="openid")["access_token"]).json().keys() == {"sub"}
    answer = site.userinfo(site.tokens()["access_token"])
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]


def test_userinfo_challenges_who_comes_without_a_token(site: Site) -> None:
    answer = site.http.get(f"{ISSUER}/userinfo")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    for wrong in ("garbage", site.tokens(scope="openid")["id_token"], site.tokens()["access_token"] + "x"):
        answer = site.userinfo(wrong)
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_an_older_sign_in_than_is_asked_for_is_renewed(site: Site) -> None:
    client_id, browser = site.client(), site.browser()
    site.code(client_id, Pkce(), browser)
    site.clock.advance(600)
    for changes in ({"max_age": "300"}, {"max_age": "0"}, {"prompt": "login"}, {"prompt": "select_account"}):
        assert "Sign in" in site.authorize(browser, client_id, Pkce(), **changes).text
    assert "Allow A test?" in site.authorize(browser, client_id, Pkce(), max_age="900").text
    site.authorize(browser, client_id, Pkce(), prompt="login", max_age="0")
    assert "Allow A test?" in browser.follow(browser.sign_in()).text


def test_a_client_gets_a_token_for_itself_where_the_operator_allows_it(site: Site) -> None:
    client_id = site.own_client(grant_types=("client_credentials",), scopes=(SCOPE,), redirect_uris=())
    answer = site.post("/token", (client_id, "a secret"), grant_type="client_credentials", resource=MCP)
    tokens = answer.json()
    claims = payload(tokens["access_token"])
    assert "refresh_token" not in tokens
    assert (claims["sub"], claims["client_id"], claims["aud"], claims["scope"]) == (client_id, client_id, MCP, SCOPE)
    refused(
        site.post("/token", (client_id, "a secret"), grant_type="client_credentials", scope="other:read"),
        400,
        "invalid_scope",
    )
    refused(
        site.post("/token", (client_id, "a secret"), grant_type="client_credentials", resource="https://x.example"),
        400,
        "invalid_target",
    )
    refused(site.post("/token", grant_type="client_credentials", client_id=site.client()), 401, "invalid_client")
    other = site.own_client()
    refused(site.post("/token", (other, "a secret"), grant_type="client_credentials"), 400, "unauthorized_client")
