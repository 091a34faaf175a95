"""Authorization code with PKCE, from the first request to tokens."""

import pytest

from tests.idp.site import ISSUER, MCP, SCOPE, Pkce, Site, came_back, payload, refused


def test_a_person_signs_in_allows_a_client_and_it_gets_tokens(site: Site) -> None:
    client_id, pkce, browser = site.client(), Pkce(), site.browser()
    assert site.authorize(browser, client_id, pkce).status_code == 200
    answer = browser.follow(browser.sign_in())
    assert browser.page is not None
    assert "A test" in browser.page.text
    assert "Run Python code" in browser.page.text
    assert "127.0.0.1" in browser.page.text
    assert "Nobody here has checked this application" in browser.page.text

    back = came_back(browser.submit(decision="allow"))

    assert back.keys() == {"code", "state", "iss"}
    assert (back["state"], back["iss"]) == ("xyz", ISSUER)
    answer = site.exchange(client_id, back["code"], pkce)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    tokens = answer.json()
    assert tokens.keys() == {"access_token", "token_type", "expires_in", "scope", "refresh_token"}
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 900, SCOPE)
    claims = payload(tokens["access_token"])
    assert (claims["iss"], claims["aud"], claims["client_id"], claims["scope"]) == (ISSUER, MCP, client_id, SCOPE)
    assert claims["exp"] - claims["iat"] == 900


def test_a_refusal_goes_back_to_the_client_with_the_issuer(site: Site) -> None:
    client_id, browser = site.client(), site.browser()
    site.authorize(browser, client_id, Pkce())
    browser.follow(browser.sign_in())
    back = came_back(browser.submit(decision="deny"))
    assert (back["error"], back["state"], back["iss"]) == ("access_denied", "xyz", ISSUER)
    assert "code" not in back


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": 'to"ken'}, "invalid_request"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"scope": "root"}, "invalid_scope"),
        ({"scope": "other:read"}, "invalid_scope"),
        ({"resource": "https://evil.example.com/mcp"}, "invalid_target"),
        ({"resource": "/mcp"}, "invalid_target"),
        ({"resource": [MCP, "https://other.example.com/mcp"]}, "invalid_target"),
        ({"request": "ey"}, "request_not_supported"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"max_age": "soon"}, "invalid_request"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"prompt": "none"}, "login_required"),
        ({"scope": ["a", "b"]}, "invalid_request"),
        ({"scope": "\u00e9\n"}, "invalid_request"),
    ],
    ids=str,
)
def test_a_faulty_request_goes_back_as_an_error(shared: Site, changes: dict[str, str], error: str) -> None:
    browser = shared.browser()
    back = came_back(shared.authorize(browser, shared.client(), Pkce(), **changes))
    assert (back["error"], back["state"], back["iss"]) == (error, "xyz", ISSUER)


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"code_verifier": "x" * 43}, 400, "invalid_grant"),
        ({"code_verifier": None}, 400, "invalid_request"),
        ({"code": "unknown"}, 400, "invalid_grant"),
        ({"code": None}, 400, "invalid_request"),
        ({"redirect_uri": "http://127.0.0.1:4711/other"}, 400, "invalid_grant"),
        ({"client_id": "unknown"}, 400, "invalid_client"),
        ({"resource": "https://other.example.com/mcp"}, 400, "invalid_target"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": None}, 400, "unsupported_grant_type"),
        ({"code_verifier": ["a" * 43, "b" * 43]}, 400, "invalid_request"),
    ],
    ids=str,
)
def test_a_faulty_exchange_is_refused(shared: Site, changes: dict[str, str], status: int, error: str) -> None:
    client_id, pkce = shared.client(), Pkce()
    code = shared.code(client_id, pkce)
    answer = shared.exchange(client_id, code, pkce, **changes)
    refused(answer, status, error)


def test_a_wrong_verifier_does_not_spoil_the_code_for_its_owner(site: Site) -> None:
    client_id, pkce = site.client(), Pkce()
    code = site.code(client_id, pkce)
    refused(site.exchange(client_id, code, Pkce()), 400, "invalid_grant")
    assert site.exchange(client_id, code, pkce).status_code == 200


def test_a_client_without_a_redirect_uri_in_the_exchange_is_served(site: Site) -> None:
    client_id, pkce = site.client(), Pkce()
    assert site.exchange(client_id, site.code(client_id, pkce), pkce, redirect_uri=None).status_code == 200


def test_a_code_is_good_for_a_minute(site: Site) -> None:
    client_id, pkce = site.client(), Pkce()
    code = site.code(client_id, pkce)
    site.clock.advance(60)
    refused(site.exchange(client_id, code, pkce), 400, "invalid_grant")


def test_what_is_kept_of_codes_tokens_secrets_and_passwords_is_their_hash(site: Site) -> None:
    client_id, pkce = site.client(), Pkce()
    code = site.code(client_id, pkce)
    tokens = site.exchange(client_id, code, pkce).json()
    secret = site.register(token_endpoint_auth_method="client_secret_basic").json()["client_secret"]
    kept = b"".join(path.read_bytes() for path in site.home.glob("idp.db*"))
    for one in (code, tokens["refresh_token"], tokens["access_token"], secret, "correct horse"):
        assert one.encode() not in kept


def test_without_a_resource_the_default_one_is_meant(site: Site) -> None:
    assert payload(site.tokens(resource=None)["access_token"])["aud"] == MCP


def test_without_a_scope_everything_of_the_resource_is_meant(site: Site) -> None:
    assert site.tokens(scope=None)["scope"] == SCOPE


def test_a_client_that_the_operator_gave_fewer_scopes_gets_no_more_than_those(site: Site) -> None:
    client_id = site.own_client(secret=None, scopes=("openid",))
    back = came_back(site.authorize(site.browser(), client_id, Pkce()))
    assert back["error"] == "invalid_scope"


def test_a_client_that_registered_itself_for_less_may_ask_for_more_later(site: Site) -> None:
    client_id = site.client(scope="openid")
    assert site.tokens(client_id)["scope"] == SCOPE


def test_consent_is_remembered_for_clients_of_the_operator_only(site: Site) -> None:
    own, unknown, browser = site.own_client(secret=None), site.client(), site.browser()
    site.code(own, Pkce(), browser)
    assert "code" in came_back(site.authorize(browser, own, Pkce()))
    assert site.authorize(browser, own, Pkce(), prompt="consent").status_code == 200
    assert site.authorize(browser, own, Pkce(), scope=f"{SCOPE} openid").status_code == 200
    site.code(unknown, Pkce(), browser)
    assert site.authorize(browser, unknown, Pkce()).status_code == 200
    assert came_back(site.authorize(browser, unknown, Pkce(), prompt="none"))["error"] == "consent_required"
    assert "code" in came_back(site.authorize(browser, own, Pkce(), prompt="none"))


def test_a_posted_authorization_request_becomes_a_get(site: Site) -> None:
    query = site.authorize_query(site.client(), Pkce())
    answer = site.browser().send("POST", f"{ISSUER}/authorize", data=query)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"{ISSUER}/authorize?")


def test_a_confidential_client_says_who_it_is_in_either_way(site: Site) -> None:
    client_id = site.own_client()
    for sent in (
        {"auth": (client_id, "a secret"), "client_id": None},
        {"client_secret": "a secret"},
    ):
        pkce = Pkce()
        code = site.code(client_id, pkce)
        assert site.exchange(client_id, code, pkce, **sent).status_code == 200
    pkce = Pkce()
    code = site.code(client_id, pkce)
    refused(site.exchange(client_id, code, pkce, auth=(client_id, "wrong"), client_id=None), 401, "invalid_client")
    refused(site.exchange(client_id, code, pkce), 401, "invalid_client")
