"""What people see: the account page, devices, signing out."""

from typing import Any
from urllib.parse import urlencode

import pytest

from tests.idp.site import ISSUER, MCP, PASSWORD, SCOPE, Browser, Site, refused

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def signed_in(site: Site) -> Browser:
    browser = site.browser()
    browser.get(f"{ISSUER}/account")
    browser.sign_in()
    browser.get(f"{ISSUER}/account")
    return browser


def test_the_account_page_ends_what_was_allowed(site: Site) -> None:
    tokens = site.tokens(site.client(client_name="The editor"))
    browser = signed_in(site)
    assert browser.page is not None
    assert "The editor" in browser.page.text
    assert "Run Python code" in browser.page.text
    (number,) = [n for n, (action, _) in enumerate(browser.page.forms) if action.endswith("/account/revoke")]
    browser.follow(browser.submit(number))
    assert "The editor" not in browser.page.text
    refused(site.refresh(tokens["client_id"], tokens["refresh_token"]), 400, "invalid_grant")


def test_the_account_page_ends_nothing_of_anybody_elses(site: Site) -> None:
    tokens = site.tokens()
    site.parts.people.add("bob", PASSWORD)
    (grant,) = site.parts.grants.of(site.parts.people.named("ada").id)
    browser = site.browser()
    browser.get(f"{ISSUER}/account")
    browser.follow(browser.sign_in("bob"))
    assert browser.page is not None
    mark = browser.page.forms[0][1]["csrf"]
    answer = browser.send(
        "POST", f"{ISSUER}/account/revoke", data={"csrf": mark, "grant": grant.id}, headers={"origin": ISSUER}
    )
    assert answer.status_code == 303
    assert site.refresh(tokens["client_id"], tokens["refresh_token"]).status_code == 200


def test_another_browser_is_signed_out_from_the_account_page(site: Site) -> None:
    other, browser = signed_in(site), signed_in(site)
    assert browser.page is not None
    (number,) = [n for n, (action, _) in enumerate(browser.page.forms) if action.endswith("/account/sign-out")]
    browser.submit(number)
    assert "Sign in" in other.get(f"{ISSUER}/account").text
    assert "Sign in" not in browser.get(f"{ISSUER}/account").text


def test_signing_out_ends_the_sign_in_on_the_server_too(site: Site) -> None:
    browser = signed_in(site)
    thief = site.browser()
    thief.cookies.update(browser.cookies)
    assert "You are signed out" in browser.submit(0).text
    assert not browser.cookies
    assert "Sign in" in thief.get(f"{ISSUER}/account").text


def test_a_sign_in_ends_after_twelve_hours(site: Site) -> None:
    browser = signed_in(site)
    site.clock.advance(12 * 3600)
    assert "Sign in" in browser.get(f"{ISSUER}/account").text


def test_a_client_signs_a_person_out_after_a_click_and_leads_back(site: Site) -> None:
    client_id = site.own_client(secret=None, post_logout_redirect_uris=("https://app.example/bye",))
    tokens, browser = site.tokens(client_id, scope="openid"), signed_in(site)
    query = {
        "id_token_hint": tokens["id_token"],
        "post_logout_redirect_uri": "https://app.example/bye",
        "state": "s&t",
    }
    site.clock.advance(3600)
    answer = browser.get(f"{ISSUER}/logout?{urlencode(query)}")
    assert "The operator's own" in answer.text.replace("&#39;", "'")
    assert "Sign in" not in browser.get(f"{ISSUER}/account").text
    browser.get(f"{ISSUER}/logout?{urlencode(query)}")
    answer = browser.submit(decision="leave")
    assert (answer.status_code, answer.headers["location"]) == (303, "https://app.example/bye?state=s%26t")
    assert "Sign in" in browser.get(f"{ISSUER}/account").text


@pytest.mark.parametrize(
    "changes",
    [
        {"id_token_hint": None},
        {"id_token_hint": "garbage"},
        {"post_logout_redirect_uri": "https://evil.example/bye"},
        {"client_id": "another"},
    ],
    ids=str,
)
def test_signing_out_leads_nowhere_that_is_not_registered_by_the_client_of_the_id_token(
    site: Site, changes: dict[str, str | None]
) -> None:
    client_id = site.own_client(secret=None, post_logout_redirect_uris=("https://app.example/bye",))
    tokens, browser = site.tokens(client_id, scope="openid"), signed_in(site)
    asked = {
        "id_token_hint": tokens["id_token"],
        "post_logout_redirect_uri": "https://app.example/bye",
        **changes,
    }
    browser.get(f"{ISSUER}/logout", params={name: value for name, value in asked.items() if value is not None})
    answer = browser.submit(decision="leave")
    assert (answer.status_code, "You are signed out" in answer.text) == (200, True)


# -- devices -----------------------------------------------------------------------------------------------------------


def device_client(site: Site) -> str:
    return site.client(grant_types=[DEVICE_GRANT, "refresh_token"], redirect_uris=[], client_name="The terminal")


def ask(site: Site, client_id: str) -> dict[str, Any]:
    answer = site.post("/device_authorization", client_id=client_id, scope=SCOPE, resource=MCP)
    assert answer.status_code == 200, answer.text
    return answer.json()


def poll(site: Site, client_id: str, device_code: str) -> Any:
    return site.post("/token", grant_type=DEVICE_GRANT, device_code=device_code, client_id=client_id)


def test_a_device_gets_tokens_once_somebody_has_typed_its_code(site: Site) -> None:
    client_id = device_client(site)
    shown = ask(site, client_id)
    assert (shown["verification_uri"], shown["interval"], shown["expires_in"]) == (f"{ISSUER}/device", 5, 600)
    refused(poll(site, client_id, shown["device_code"]), 400, "authorization_pending")
    refused(poll(site, client_id, shown["device_code"]), 400, "slow_down")
    browser = signed_in(site)
    browser.get(shown["verification_uri_complete"])
    answer = browser.submit(user_code=shown["user_code"].lower().replace("-", " "))
    for word in ("The terminal", "Run Python code", shown["user_code"]):
        assert word in answer.text
    assert "goes on by itself" in browser.submit(decision="allow").text
    tokens = poll(site, client_id, shown["device_code"]).json()
    assert tokens["scope"] == SCOPE
    assert site.refresh(client_id, tokens["refresh_token"]).status_code == 200
    refused(poll(site, client_id, shown["device_code"]), 400, "invalid_grant")


def test_a_device_that_was_refused_gets_nothing(site: Site) -> None:
    client_id = device_client(site)
    shown, browser = ask(site, client_id), signed_in(site)
    browser.get(f"{ISSUER}/device")
    browser.submit(user_code=shown["user_code"])
    assert "gets nothing" in browser.submit(decision="deny").text
    refused(poll(site, client_id, shown["device_code"]), 400, "access_denied")


def test_a_device_waits_ten_minutes(site: Site) -> None:
    client_id = device_client(site)
    shown, browser = ask(site, client_id), signed_in(site)
    site.clock.advance(601)
    refused(poll(site, client_id, shown["device_code"]), 400, "expired_token")
    browser.get(f"{ISSUER}/device")
    assert "No device shows that code" in browser.submit(user_code=shown["user_code"]).text


def test_codes_of_devices_cannot_be_guessed_at_length(site: Site) -> None:
    browser = signed_in(site)
    browser.get(f"{ISSUER}/device")
    statuses = [browser.submit(user_code=f"BCDF-BCD{letter}").status_code for letter in "BCDFGHJKLMN"]
    assert statuses == [400] * 10 + [429]


def test_a_device_asks_for_what_is_there_only(site: Site) -> None:
    client_id = device_client(site)
    for changes, error in (
        ({"scope": "root"}, "invalid_scope"),
        ({"resource": "https://x.example"}, "invalid_target"),
        ({"client_id": site.client()}, "unauthorized_client"),
    ):
        form: dict[str, Any] = {"client_id": client_id, "scope": SCOPE, "resource": MCP, **changes}
        refused(site.post("/device_authorization", **form), 400, error)
