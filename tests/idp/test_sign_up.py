"""Making oneself an account, where the operator lets people do so."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from pyexec_idp.app.web import ways
from tests.idp.site import CALLBACK, ISSUER, PASSWORD, Browser, Pkce, Site, came_back


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "idp", PYEXEC_IDP_SIGN_UP="yes")
    yield made
    made.close()


def submit(
    browser: Browser,
    *,
    user: str = "grace",
    password: str = PASSWORD,
    again: str = PASSWORD,
    headers: dict[str, str] | None = None,
    **more: str,
) -> httpx2.Response:
    return browser.submit(0, headers, user=user, called="Grace Hopper", password=password, again=again, **more)


def at_the_form(site: Site) -> Browser:
    browser = site.browser()
    browser.get(f"{ISSUER}/sign-up")
    return browser


def test_nobody_makes_an_account_unless_the_operator_lets_them(site: Site) -> None:
    browser = site.browser()
    assert "Make one" not in browser.get(f"{ISSUER}/account").text
    assert browser.get(f"{ISSUER}/sign-up").status_code == 404
    assert site.http.post(f"{ISSUER}/sign-up", data={"user": "grace"}).status_code == 404
    assert "/sign-up" not in {way.path for way in ways(site.parts)}


def test_a_new_person_makes_an_account_on_the_way_to_a_client(opened: Site) -> None:
    browser, client_id, pkce = opened.browser(), opened.client(), Pkce()
    opened.authorize(browser, client_id, pkce)
    assert browser.page is not None
    browser.get(browser.page.links[0])
    browser.follow(submit(browser))
    assert "Grace Hopper" in browser.page.text
    code = came_back(browser.submit(decision="allow"))["code"]
    assert opened.exchange(client_id, code, pkce).status_code == 200
    assert {"signed_up", "user_added", "signed_in"} <= set(opened.audited())


def test_the_form_may_lead_to_the_client_and_nowhere_else(opened: Site) -> None:
    browser = opened.browser()
    opened.authorize(browser, opened.client(), Pkce())
    assert browser.page is not None
    policy = browser.get(browser.page.links[0]).headers["content-security-policy"]
    assert f"form-action 'self' {CALLBACK.removesuffix('/callback')};" in policy
    answer = browser.get(
        f"{ISSUER}/sign-up", params={"to": "https://evil.example/", "leads_to": "https://x; script-src *"}
    )
    assert "script-src" not in answer.headers["content-security-policy"]
    assert submit(browser).headers["location"] == f"{ISSUER}/account"


@pytest.mark.parametrize(
    ("user", "password", "again", "said"),
    [
        ("ada", PASSWORD, PASSWORD, "There is a user ada already."),
        ("ADA", PASSWORD, PASSWORD, "There is a user ada already."),
        ("<b>", PASSWORD, PASSWORD, "cannot be a user's name"),
        ("", PASSWORD, PASSWORD, "cannot be a user's name"),
        ("grace", "short", "short", "it must have between 12 and 256"),
        ("grace", PASSWORD, "another one altogether", "The two passwords are not the same."),
    ],
)
def test_an_account_that_cannot_be_made_is_refused_with_a_reason(
    opened: Site, user: str, password: str, again: str, said: str
) -> None:
    browser = at_the_form(opened)
    answer = submit(browser, user=user, password=password, again=again)
    assert answer.status_code == 400
    assert browser.page is not None
    assert said in browser.page.text
    assert PASSWORD not in answer.text
    assert len(opened.parts.people.all()) == 1


def test_a_form_from_elsewhere_makes_no_account(opened: Site) -> None:
    assert submit(at_the_form(opened), csrf="x" * 43).status_code == 403
    assert submit(at_the_form(opened), headers={"origin": "https://evil.example"}).status_code == 403
    assert len(opened.parts.people.all()) == 1


def test_accounts_are_made_a_few_at_a_time_from_one_address(opened: Site) -> None:
    browser = at_the_form(opened)
    statuses = [submit(browser, user="ada").status_code for _attempt in range(11)]
    assert statuses == [400] * 10 + [429]
    opened.clock.advance(901)
    assert submit(browser).status_code == 303
