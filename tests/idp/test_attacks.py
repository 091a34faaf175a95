"""What an attacker would try: with codes, redirects, forms, cookies, names."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest

from tests.idp.site import CALLBACK, ISSUER, PASSWORD, SCOPE, Pkce, Site, came_back, refused


def test_a_replayed_code_ends_everything_it_gave(site: Site) -> None:
    client_id, pkce = site.client(), Pkce()
    code = site.code(client_id, pkce, scope=f"{SCOPE} openid")
    tokens = site.exchange(client_id, code, pkce).json()
    assert site.userinfo(tokens["access_token"]).status_code == 200
    refused(site.exchange(client_id, code, pkce), 400, "invalid_grant")
    refused(site.refresh(client_id, tokens["refresh_token"]), 400, "invalid_grant")
    assert site.userinfo(tokens["access_token"]).status_code == 401
    assert site.audited()[0] == "code_replayed"


def test_of_exchanges_at_once_one_wins_at_most(site: Site) -> None:
    client_id, pkce = site.client(), Pkce()
    code = site.code(client_id, pkce)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: site.exchange(client_id, code, pkce).status_code, range(6)))
    assert sorted(answers) == [200, 400, 400, 400, 400, 400]


def test_a_stolen_code_is_of_no_use_to_another_client(site: Site) -> None:
    client_id, evil, pkce = site.client(), site.client(), Pkce()
    code = site.code(client_id, pkce)
    refused(site.exchange(evil, code, pkce), 400, "invalid_grant")
    assert site.exchange(client_id, code, pkce).status_code == 200


def test_a_code_injected_into_another_session_fails_by_its_verifier(site: Site) -> None:
    client_id, victims, attackers = site.client(), Pkce(), Pkce()
    stolen = site.code(client_id, victims)
    refused(site.exchange(client_id, stolen, attackers), 400, "invalid_grant")


@pytest.mark.case("B146")
@pytest.mark.case("B147")
@pytest.mark.parametrize(
    ("registered", "asked", "fits"),
    [
        ("http://127.0.0.1/callback", "http://127.0.0.1:49567/callback", True),
        ("http://127.0.0.1:33418/callback", "http://127.0.0.1:49567/callback", True),
        ("http://[::1]/callback", "http://[::1]:49567/callback", True),
        ("http://localhost/callback", "http://localhost:5000/callback", True),
        ("http://localhost/callback", "http://127.0.0.1:5000/callback", False),
        ("http://127.0.0.1/callback", "http://[::1]:49567/callback", False),
        ("http://127.0.0.1/callback", "http://127.0.0.1:49567/other", False),
        ("http://127.0.0.1/callback", "https://127.0.0.1:49567/callback", False),
        ("http://127.0.0.1/callback", "http://127.0.0.1:49567/callback?x=1", False),
        ("http://127.0.0.1/callback", "http://127.0.0.1:49567/callback#x", False),
        ("http://127.0.0.1/callback", "http://me@127.0.0.1:49567/callback", False),
        ("http://127.0.0.1/callback", "http://127.0.0.1:99999/callback", False),
        ("http://127.0.0.1/callback", "http://127.0.0.1:0/callback", False),
        ("http://127.0.0.1/callback", "http://evil.example/callback", False),
        ("http://localhost/callback", "http://localhost.evil.example/callback", False),
        ("http://localhost/callback", "http://localhost@evil.example/callback", False),
        ("https://app.example/cb", "https://app.example/cb", True),
        ("https://app.example/cb", "https://app.example:444/cb", False),
        ("https://app.example/cb", "https://app.example/cb/", False),
        ("https://app.example/cb", "https://app.example/cb/../evil", False),
        ("https://app.example/cb", "https://app.example/cb?next=evil", False),
        ("https://app.example/cb", "https://APP.example/cb", False),
        ("https://app.example/cb", "https://app.example\\@evil.example/cb", False),
        ("https://app.example/cb", "javascript:alert(1)", False),
    ],
)
def test_only_the_port_of_a_loopback_redirect_may_vary(shared: Site, registered: str, asked: str, fits: bool) -> None:
    client_id, browser = shared.client(redirect_uris=[registered]), shared.browser()
    answer = shared.authorize(browser, client_id, Pkce(), redirect_uri=asked, prompt="none")
    if fits:
        assert came_back(answer, asked)["error"] == "login_required"
    else:
        assert answer.status_code == 400
        assert "location" not in answer.headers
        assert browser.page is not None
        assert asked not in browser.page.text


@pytest.mark.case("B148")
@pytest.mark.parametrize(
    "uri",
    [
        "http://10.0.0.5/cb",
        "http://evil.example/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://ok/cb#frag",
        "https://user@ok/cb",
        "https://ok/c b",
        "https:///cb",
        "//ok/cb",
        "/cb",
        "",
        "https://ok\\@evil/cb",
        "https://ok/\u202ecb",
        "cursor://callback",
        "x" * 3000,
    ],
)
def test_redirect_uris_that_lead_astray_are_not_registered(shared: Site, uri: str) -> None:
    refused(shared.register(redirect_uris=[uri]), 400, "invalid_redirect_uri")
    refused(shared.register(redirect_uris=[CALLBACK, uri]), 400, "invalid_redirect_uri")


@pytest.mark.case("B163")
@pytest.mark.parametrize(
    "query",
    [
        {"client_id": "<script>alert(1)</script>"},
        {"client_id": "unknown", "redirect_uri": "https://evil.example/<script>"},
        {"error": "<script>alert(1)</script>", "state": "<script>alert(1)</script>"},
        {},
        {"client_id": ["a", "b"]},
    ],
)
def test_a_request_that_cannot_be_trusted_ends_at_a_page_that_repeats_nothing_of_it(
    shared: Site, query: dict[str, str]
) -> None:
    answer = shared.browser().get(f"{ISSUER}/authorize", params=query)
    assert answer.status_code == 400
    assert "location" not in answer.headers
    for word in ("script>", "alert", "evil", "Traceback"):
        assert word not in answer.text


def test_an_error_is_never_redirected_to_an_address_that_is_not_registered(site: Site) -> None:
    answer = site.authorize(
        site.browser(), site.client(), Pkce(), redirect_uri="https://evil.example/cb", response_type="token"
    )
    assert (answer.status_code, "location" in answer.headers) == (400, False)


@pytest.mark.parametrize(
    "to",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "/authorize\\@evil",
        "/account//evil.example/../..",
        "javascript:alert(1)",
        "/sign-out",
        "/authorize\n?x",
    ],
)
def test_a_sign_in_leads_nowhere_but_to_our_own_pages(shared: Site, to: str) -> None:
    browser = shared.browser()
    browser.get(f"{ISSUER}/account")
    answer = browser.submit(user="ada", password=PASSWORD, to=to)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{ISSUER}/account")


def test_what_a_form_says_about_where_it_leads_cannot_widen_the_policy(site: Site) -> None:
    browser = site.browser()
    browser.get(f"{ISSUER}/account")
    answer = browser.submit(user="ada", password="wrong", leads_to="https://x.example; script-src *")
    assert "script-src" not in answer.headers["content-security-policy"]
    assert "x.example" not in answer.headers["content-security-policy"]


@pytest.mark.case("B159")
def test_consent_to_one_client_is_none_to_another(site: Site) -> None:
    browser = site.browser()
    site.code(site.own_client(secret=None), Pkce(), browser)
    evil = site.client(redirect_uris=["https://evil.example/cb"], client_name="The operator's own")
    answer = site.authorize(browser, evil, Pkce(), redirect_uri="https://evil.example/cb")
    assert answer.status_code == 200
    assert browser.page is not None
    assert "evil.example" in browser.page.text
    assert "Nobody here has checked this application" in browser.page.text


@pytest.mark.case("B159")
def test_a_consent_form_works_in_its_own_browser_only(site: Site) -> None:
    client_id, attacker, victim = site.client(), site.browser(), site.browser()
    for browser in (attacker, victim):
        site.authorize(browser, client_id, Pkce())
        browser.follow(browser.sign_in())
    assert attacker.page is not None
    action, fields = attacker.page.forms[0]
    answer = victim.send("POST", action, data={**fields, "decision": "allow"}, headers={"origin": ISSUER})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=str,
)
def test_a_form_from_another_site_is_refused(shared: Site, headers: dict[str, str]) -> None:
    browser = shared.browser()
    shared.authorize(browser, shared.client(), Pkce())
    browser.follow(browser.sign_in())
    assert browser.submit(decision="allow", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "path", ["/consent", "/sign-in", "/sign-out", "/account/revoke", "/account/sign-out", "/device", "/device/decide"]
)
def test_a_form_without_the_mark_of_the_browser_is_refused(shared: Site, path: str) -> None:
    browser = shared.browser()
    browser.get(f"{ISSUER}/account")
    browser.sign_in()
    data = {"user": "ada", "password": PASSWORD, "decision": "allow", "asked": "client_id=x"}
    for more in ({}, {"csrf": "x" * 43}):
        answer = browser.send("POST", ISSUER + path, data={**data, **more}, headers={"origin": ISSUER})
        assert answer.status_code == 403
    assert browser.get(f"{ISSUER}/account").text.count("ada")


def test_the_cookies_are_new_after_a_sign_in(site: Site) -> None:
    browser = site.browser()
    browser.get(f"{ISSUER}/account")
    before = dict(browser.cookies)
    answer = browser.sign_in()
    for line in answer.headers.get_list("set-cookie"):
        assert line.startswith("__Host-pyexec-idp-")
        for word in ("HttpOnly", "Path=/", "SameSite=lax", "Secure"):
            assert word in line
        assert "Domain" not in line
    assert not set(before.values()) & set(browser.cookies.values())


def test_a_session_that_was_given_to_a_browser_is_not_signed_in(site: Site) -> None:
    planted = {"__Host-pyexec-idp-session": "A" * 43, "__Host-pyexec-idp-browser": "B" * 43}
    browser = site.browser()
    browser.cookies.update(planted)
    browser.get(f"{ISSUER}/account")
    browser.sign_in()
    attacker = site.browser()
    attacker.cookies.update(planted)
    assert "Sign in" in attacker.get(f"{ISSUER}/account").text


def test_signing_in_anew_ends_the_sign_in_before(site: Site) -> None:
    browser = site.browser()
    browser.get(f"{ISSUER}/account")
    browser.sign_in()
    old = dict(browser.cookies)
    site.authorize(browser, site.client(), Pkce(), prompt="login")
    browser.sign_in()
    thief = site.browser()
    thief.cookies.update(old)
    assert "Sign in" in thief.get(f"{ISSUER}/account").text


def test_a_name_that_is_not_there_is_refused_like_a_wrong_password(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str | None] = []
    passwords = site.parts.people._passwords
    check = type(passwords).check

    def counting(self: object, password: str, kept: str | None) -> tuple[bool, str | None]:
        hashed.append(password)
        return check(passwords, password, kept)

    monkeypatch.setattr(type(passwords), "check", counting)
    site.parts.people.add("gone", PASSWORD)
    site.parts.people.disable("gone")
    answers: set[tuple[int, str]] = set()
    for name in ("ada", "nobody", "gone"):
        browser = site.browser()
        browser.get(f"{ISSUER}/account")
        answer = browser.sign_in(name, "wrong wrong wrong" if name == "ada" else PASSWORD)
        assert browser.page is not None
        answers.add((answer.status_code, browser.page.text.replace(name, "")))
    assert len(answers) == 1
    assert len(hashed) == 3


def test_guessing_is_slowed_down_for_a_name_whether_it_exists_or_not(site: Site) -> None:
    for name in ("ada", "nobody"):
        browser = site.browser()
        browser.get(f"{ISSUER}/account")
        statuses = [browser.sign_in(name, f"wrong {n}").status_code for n in range(11)]
        assert statuses == [401] * 10 + [429]
        assert browser.sign_in(name).status_code == 429
    site.clock.advance(901)
    browser.get(f"{ISSUER}/account")
    assert browser.sign_in("ada").status_code == 303


def test_registering_is_slowed_down_by_address(site: Site) -> None:
    statuses = [site.register().status_code for _ in range(21)]
    assert statuses == [201] * 20 + [429]


def test_a_client_cannot_register_itself_for_tokens_without_a_person(site: Site) -> None:
    answer = site.register(grant_types=["client_credentials"], token_endpoint_auth_method="client_secret_basic")
    refused(answer, 400, "invalid_client_metadata")


def test_a_user_name_that_would_be_a_script_stays_text(site: Site) -> None:
    client_id = site.client(client_name='<img src=x onerror="alert(1)">')
    browser = site.browser()
    site.authorize(browser, client_id, Pkce())
    answer = browser.follow(browser.sign_in())
    assert "<img" not in answer.text
    assert "&lt;img" in answer.text


def test_what_is_asked_for_may_be_changed_in_the_form_but_not_beyond_the_rules(site: Site) -> None:
    client_id, browser = site.client(), site.browser()
    site.authorize(browser, client_id, Pkce())
    browser.follow(browser.sign_in())
    evil = urlencode(site.authorize_query(client_id, Pkce(), redirect_uri="https://evil.example/cb"))
    answer = browser.submit(decision="allow", asked=evil)
    assert (answer.status_code, "location" in answer.headers) == (400, False)
