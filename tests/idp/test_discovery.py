"""What it says about itself, and that this is what is there."""

from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from pyexec_idp.app.web import ways
from tests.idp.site import ISSUER, MCP, SCOPE, Site, payload

OAUTH = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"

ANY_ORIGIN = {OAUTH, OPENID, "/.well-known/jwks.json", "/token", "/register", "/revoke", "/userinfo"}
BY_SECRET = {"/introspect"}
BY_CLIENT = {"/device_authorization"}
BROWSER = {
    "/authorize",
    "/consent",
    "/sign-in",
    "/sign-out",
    "/account",
    "/account/revoke",
    "/account/sign-out",
    "/device",
    "/device/decide",
    "/logout",
}
OPERATOR = {"/health", "/metrics"}


def test_every_route_is_one_that_somebody_has_thought_about(site: Site) -> None:
    found = ways(site.parts)
    assert {way.path for way in found} == ANY_ORIGIN | BY_SECRET | BY_CLIENT | BROWSER | OPERATOR
    assert {way.path for way in found if way.any_origin} == ANY_ORIGIN


@pytest.mark.parametrize("path", sorted(ANY_ORIGIN))
def test_programs_in_browsers_of_any_origin_may_call_these_without_cookies(shared: Site, path: str) -> None:
    asking = {"origin": "https://app.example", "access-control-request-method": "GET"}
    if path not in {OAUTH, OPENID, "/.well-known/jwks.json", "/userinfo"}:
        asking["access-control-request-method"] = "POST"
    answer = shared.http.options(
        ISSUER + path, headers={**asking, "access-control-request-headers": "mcp-protocol-version"}
    )
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
    assert "access-control-allow-credentials" not in answer.headers
    got = shared.http.request(
        asking["access-control-request-method"], ISSUER + path, headers={"origin": "https://a.example"}
    )
    assert got.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("path", sorted(BY_SECRET | BY_CLIENT | BROWSER | OPERATOR))
def test_programs_of_other_origins_may_not_call_these(shared: Site, path: str) -> None:
    for method in ("OPTIONS", "GET", "POST"):
        answer = shared.http.request(
            method, ISSUER + path, headers={"origin": "https://a.example", "access-control-request-method": "POST"}
        )
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", sorted(ANY_ORIGIN | BY_SECRET | BY_CLIENT | BROWSER | OPERATOR))
def test_every_answer_has_the_safe_headers(shared: Site, path: str) -> None:
    answer = shared.http.get(ISSUER + path)
    assert answer.headers["x-content-type-options"] == "nosniff"
    # A browser does not say where a form comes from whose page has no-referrer.
    is_page = answer.headers["content-type"].startswith("text/html")
    assert answer.headers["referrer-policy"] == ("same-origin" if is_page else "no-referrer")
    assert answer.headers["x-frame-options"] == "DENY"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_the_two_documents_are_one_and_name_every_endpoint_there_is(site: Site) -> None:
    document = site.http.get(ISSUER + OAUTH).json()
    assert document == site.http.get(ISSUER + OPENID).json()
    assert document["issuer"] == ISSUER
    served = {f"{ISSUER}{route.path}" for route in site.app.routes if isinstance(route, Route)}
    endpoints = {value for name, value in document.items() if name.endswith(("_endpoint", "_uri"))}
    assert endpoints <= served
    names = {"token", "authorize", "register", "revoke", "introspect", "userinfo", "device_authorization", "logout"}
    assert endpoints == {f"{ISSUER}/{name}" for name in names} | {f"{ISSUER}/.well-known/jwks.json"}
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["authorization_response_iss_parameter_supported"] is True
    assert set(document["scopes_supported"]) == {"openid", "profile", "email", "offline_access", SCOPE, "other:read"}


def test_every_grant_type_that_is_promised_is_answered_and_no_other(site: Site) -> None:
    document = site.http.get(ISSUER + OAUTH).json()
    for grant_type in [*document["grant_types_supported"], "password", "implicit"]:
        error = site.post("/token", grant_type=grant_type).json()["error"]
        assert (error == "unsupported_grant_type") == (grant_type not in document["grant_types_supported"])


def test_registration_that_is_switched_off_is_neither_promised_nor_done(tmp_path: Path) -> None:
    site = Site(tmp_path / "idp", PYEXEC_IDP_REGISTRATION="no", PYEXEC_IDP_CLIENT_DOCUMENTS="no")
    try:
        document = site.http.get(ISSUER + OAUTH).json()
        assert "registration_endpoint" not in document
        assert document["client_id_metadata_document_supported"] is False
        assert site.register().status_code == 403
    finally:
        site.close()


@pytest.mark.case("B142")
def test_an_issuer_with_a_path_is_found_in_each_of_the_ways(tmp_path: Path) -> None:
    site = Site(tmp_path / "idp", PYEXEC_IDP_ISSUER="https://h.example/vault")
    try:
        for url in (f"{OAUTH}/vault", f"{OPENID}/vault", f"/vault{OPENID}"):
            document = site.http.get(f"https://h.example{url}").json()
            assert document["issuer"] == "https://h.example/vault"
        for url in (OAUTH, OPENID, f"{OAUTH}/other", "/token"):
            assert site.http.get(f"https://h.example{url}").status_code == 404
        keys = site.http.get(document["jwks_uri"]).json()["keys"]
        assert document["jwks_uri"] == "https://h.example/vault/.well-known/jwks.json"
        assert len(keys) == 1
        tokens = site.tokens()
        assert payload(tokens["access_token"])["iss"] == "https://h.example/vault"
    finally:
        site.close()


def test_the_keys_are_public_and_the_token_names_its_own(site: Site) -> None:
    answer = site.http.get(f"{ISSUER}/.well-known/jwks.json")
    (key,) = answer.json()["keys"]
    assert key.keys() == {"kty", "crv", "x", "y", "kid", "use", "alg"}
    assert (key["alg"], key["crv"], key["use"]) == ("ES256", "P-256", "sig")
    assert "max-age" in answer.headers["cache-control"]
    for path in (site.home / "keys").iterdir():
        assert path.stat().st_mode & 0o077 == 0


def test_a_rotated_key_is_published_before_it_signs_and_the_old_one_until_its_tokens_have_ended(site: Site) -> None:
    def published() -> list[str]:
        return [key["kid"] for key in site.http.get(f"{ISSUER}/.well-known/jwks.json").json()["keys"]]

    (old,) = published()
    site.clock.advance(1)
    new = site.parts.ring.rotate().kid
    assert published() == [new, old]
    assert site.parts.ring.signing().thumbprint() == old
    tokens = site.tokens(scope="openid")
    site.clock.advance(600)
    assert site.parts.ring.signing().thumbprint() == new
    assert site.userinfo(tokens["access_token"]).status_code == 200
    site.clock.advance(960)
    assert published() == [new]


def test_keys_that_others_have_seen_are_withdrawn_at_once_with_what_they_signed(site: Site) -> None:
    tokens = site.tokens(scope="openid")
    new = site.parts.ring.rotate(at_once=True).kid
    assert site.userinfo(tokens["access_token"]).status_code == 401
    assert [key["kid"] for key in site.http.get(f"{ISSUER}/.well-known/jwks.json").json()["keys"]] == [new]


def test_health_says_whether_tokens_could_be_given(site: Site) -> None:
    assert site.http.get(f"{ISSUER}/health").json() == {"status": "ok"}
    for path in (site.home / "keys").glob("*.json"):
        path.unlink()
    answer = site.http.get(f"{ISSUER}/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "failing", "error": "keys_unusable"})


def test_metrics_count_what_happened(site: Site) -> None:
    site.tokens()
    text = site.http.get(f"{ISSUER}/metrics").text
    assert 'pyexec_idp_events_total{event="tokens_given"} 1' in text
    assert MCP not in text


async def _fail(_request: Request) -> Response:
    raise ValueError("sesame")


def test_metrics_count_requests_by_route_and_nothing_that_a_caller_chose_is_in_them(site: Site) -> None:
    for _time in range(2):
        site.http.post(f"{ISSUER}/token", data={"code": "sesame"}, headers={"user-agent": "sesame"})
    site.http.get(f"{ISSUER}/authorize?state=sesame")
    site.http.request("SESAME", f"{ISSUER}/token")
    for number in range(3):
        site.http.get(f"{ISSUER}/sesame/{number}")
    site.app.router.routes.insert(0, Route("/userinfo", _fail))
    with TestClient(site.app, base_url=ISSUER, raise_server_exceptions=False) as http:
        assert http.get("/userinfo").status_code == 500
    answer = site.http.get(f"{ISSUER}/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    lines = answer.text.splitlines()
    assert sorted(line for line in lines if line.startswith("pyexec_idp_http_requests_total{")) == [
        'pyexec_idp_http_requests_total{method="GET",route="/authorize",status="4xx"} 1.0',
        'pyexec_idp_http_requests_total{method="GET",route="/userinfo",status="5xx"} 1.0',
        'pyexec_idp_http_requests_total{method="GET",route="other",status="4xx"} 3.0',
        'pyexec_idp_http_requests_total{method="POST",route="/token",status="4xx"} 2.0',
        'pyexec_idp_http_requests_total{method="other",route="/token",status="4xx"} 1.0',
    ]
    assert 'pyexec_idp_http_request_seconds_count{route="/token"} 3.0' in lines
    assert "pyexec_idp_http_open_requests 1.0" in lines  # This one.
    assert "sesame" not in answer.text
