"""The pages in a real browser: with a mouse, with the keyboard alone, in the dark, without JavaScript."""

import json
from collections.abc import Iterator
from urllib.parse import urlencode

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.idp.browsing import Application, application, browser, is_missing, look, page
from tests.idp.served import Operator, operator
from tests.idp.site import PASSWORD, SCOPE, SECRETISH, Pkce

pytestmark = pytest.mark.skipif(is_missing() is not None, reason=is_missing() or "")

RESOURCE = "https://mcp.example.com/python/with/quite/a/long/address/mcp"
BACK = "Back in the application"


@pytest.fixture(scope="module")
def idp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    made = operator(
        tmp_path_factory.mktemp("idp"), PYEXEC_IDP_REGISTRATIONS_PER_ADDRESS="100", PYEXEC_IDP_SIGN_UP="yes"
    )
    made.ok("users", "add", "ada", "--display-name", "Ada Lovelace", "--password-stdin", stdin=f"{PASSWORD}\n")
    made.ok(
        *("resources", "add", RESOURCE, "--name", "The Python server of the analysts", "--default"),
        *("--scope", f"{SCOPE}=Run Python code for you", "--scope", "python:read=Read results of what ran before"),
    )
    with made.serving():
        yield made


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def client() -> Iterator[Application]:
    with application() as made:
        yield made


@pytest.fixture
def screen(chromium: Browser) -> Iterator[Page]:
    with page(chromium) as made:
        yield made


def registered(idp: Operator, client: Application, name: str) -> str:
    body = {
        "client_name": name,
        "redirect_uris": [client.url],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
    }
    return httpx2.post(f"{idp.issuer}/register", json=body).raise_for_status().json()["client_id"]


def asking(idp: Operator, client: Application, client_id: str, pkce: Pkce, **more: str) -> str:
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": client.url,
        "state": "s-1",
        "code_challenge": pkce.challenge,
        "code_challenge_method": "S256",
        **more,
    }
    return f"{idp.issuer}/authorize?{urlencode(query)}"


def exchange(idp: Operator, client: Application, client_id: str, pkce: Pkce) -> httpx2.Response:
    form = {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "code": client.arrived[-1]["code"],
        "redirect_uri": client.url,
        "code_verifier": pkce.verifier,
    }
    return httpx2.post(f"{idp.issuer}/token", data=form)


def sign_in(screen: Page, password: str = PASSWORD) -> None:
    screen.get_by_label("User name").fill("ada")
    screen.get_by_label("Password").fill(password)
    screen.get_by_role("button", name="Sign in").click()


def noted(idp: Operator) -> set[str]:
    """Return what happened, by the log."""
    return {json.loads(line)["message"] for line in idp.log().splitlines()}


def heading(screen: Page, text: str) -> None:
    expect(screen.get_by_role("heading", level=1)).to_have_text(text)


def test_a_person_signs_in_and_allows_what_is_said_in_plain_words(
    idp: Operator, client: Application, screen: Page
) -> None:
    client_id, pkce = registered(idp, client, "The editor"), Pkce()
    screen.goto(asking(idp, client, client_id, pkce))
    heading(screen, "Sign in")
    look(screen, "sign-in")
    sign_in(screen, "wrong")
    expect(screen.get_by_role("alert")).to_have_text("The user name or the password is wrong.")
    expect(screen.get_by_label("User name")).to_have_value("ada")
    look(screen, "sign-in-refused")
    sign_in(screen)
    heading(screen, "Allow The editor?")
    for words in ("Ada Lovelace", "Run Python code for you", "The Python server of the analysts", "your own computer"):
        expect(screen.get_by_role("main")).to_contain_text(words)
    look(screen, "consent")
    screen.get_by_role("button", name="Allow", exact=True).click()
    heading(screen, BACK)
    assert client.arrived[-1].keys() == {"code", "state", "iss"}
    assert client.arrived[-1]["iss"] == idp.issuer
    assert exchange(idp, client, client_id, pkce).status_code == 200
    cookies = screen.context.cookies()
    assert {(one.get("httpOnly"), one.get("sameSite")) for one in cookies} == {(True, "Lax")}
    assert {"sign_in_refused", "signed_in", "code_given", "tokens_given"} <= noted(idp)
    for secret in (PASSWORD, client.arrived[-1]["code"]):
        assert secret not in idp.log()
    # Ids have fewer characters than anything that is authority by itself.
    assert SECRETISH.search(idp.log()) is None


def test_a_new_person_makes_an_account_and_refuses_and_the_client_learns_just_that(
    idp: Operator, client: Application, screen: Page
) -> None:
    client_id = registered(idp, client, "The editor")
    screen.goto(asking(idp, client, client_id, Pkce()))
    screen.get_by_role("link", name="Make one").click()
    heading(screen, "Make an account")
    screen.get_by_label("User name").fill("ada")
    screen.get_by_label("What others call you").fill("Ada the Second")
    for label in ("Password", "The password again"):
        screen.get_by_label(label, exact=True).fill(PASSWORD)
    screen.get_by_role("button", name="Make the account").click()
    expect(screen.get_by_role("alert")).to_have_text("There is a user ada already.")
    look(screen, "sign-up-refused")
    screen.get_by_label("User name").fill("ada2")
    for label in ("Password", "The password again"):
        screen.get_by_label(label, exact=True).fill(PASSWORD)
    screen.get_by_role("button", name="Make the account").click()
    heading(screen, "Allow The editor?")
    expect(screen.get_by_role("main")).to_contain_text("Ada the Second")
    screen.get_by_role("button", name="Do not allow").click()
    heading(screen, BACK)
    assert client.arrived[-1]["error"] == "access_denied"
    assert client.arrived[-1].keys() >= {"state", "iss"}
    screen.go_back()
    heading(screen, "Allow The editor?")  # Nothing was remembered: it can be thought over.


@pytest.mark.exhaustive
def test_the_account_page_ends_an_access_and_a_sign_in_elsewhere(
    idp: Operator, client: Application, chromium: Browser, screen: Page
) -> None:
    client_id, pkce = registered(idp, client, "The notebook"), Pkce()
    screen.goto(asking(idp, client, client_id, pkce))
    sign_in(screen)
    screen.get_by_role("button", name="Allow", exact=True).click()
    heading(screen, BACK)
    tokens = exchange(idp, client, client_id, pkce).json()
    with page(chromium, user_agent="The other browser") as elsewhere:
        elsewhere.goto(f"{idp.issuer}/account")
        sign_in(elsewhere)
        heading(elsewhere, "Your account")
        screen.goto(f"{idp.issuer}/account")
        heading(screen, "Your account")
        look(screen, "account")
        row = screen.get_by_role("listitem").filter(has_text="The notebook")
        expect(row).to_have_count(1)
        row.get_by_role("button").click()
        expect(row).to_have_count(0)
        other = screen.get_by_role("listitem").filter(has_text="The other browser")
        other.get_by_role("button").click()
        expect(other).to_have_count(0)
        elsewhere.goto(f"{idp.issuer}/account")
        heading(elsewhere, "Sign in")
    form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": tokens["refresh_token"]}
    assert httpx2.post(f"{idp.issuer}/token", data=form).json()["error"] == "invalid_grant"
    screen.get_by_role("button", name="Sign out", exact=True).first.click()
    heading(screen, "You are signed out")
    screen.goto(f"{idp.issuer}/authorize?client_id=unknown")
    heading(screen, "That did not work")
    look(screen, "fault")


def focused(screen: Page) -> str:
    """Return what has the focus; that it has it is seen."""
    style = "getComputedStyle(document.activeElement)"
    assert screen.evaluate(f"{style}.outlineStyle + ' ' + {style}.outlineWidth") == "solid 3px"
    return screen.evaluate("document.activeElement.textContent.trim() || document.activeElement.id")


def test_the_keyboard_is_enough_and_shows_where_it_is(idp: Operator, client: Application, screen: Page) -> None:
    keys = screen.keyboard
    screen.goto(asking(idp, client, registered(idp, client, "The editor"), Pkce()))
    assert focused(screen) == "user"
    keys.type("ada")
    keys.press("Tab")
    assert focused(screen) == "password"
    keys.type(PASSWORD)
    keys.press("Tab")
    assert focused(screen) == "Sign in"
    keys.press("Enter")
    heading(screen, "Allow The editor?")
    keys.press("Tab")
    assert focused(screen) == "Allow"
    keys.press("Tab")
    assert focused(screen) == "Do not allow"
    keys.press("Shift+Tab")
    keys.press("Space")
    heading(screen, BACK)
    assert "code" in client.arrived[-1]
    screen.goto(f"{idp.issuer}/account")
    keys.press("Tab")
    assert focused(screen) == "Sign out"
    keys.press("Enter")
    heading(screen, "You are signed out")


@pytest.mark.exhaustive
def test_the_dark_has_pages_of_its_own(idp: Operator, client: Application, chromium: Browser) -> None:
    with page(chromium, color_scheme="dark") as screen:
        screen.goto(asking(idp, client, registered(idp, client, "The editor"), Pkce()))
        background = screen.evaluate("getComputedStyle(document.body).backgroundColor")
        assert sum(int(one) for one in background.removeprefix("rgb(").removesuffix(")").split(",")) < 3 * 64
        look(screen, "sign-in-dark", in_the_dark=True)
        sign_in(screen)
        heading(screen, "Allow The editor?")
        look(screen, "consent-dark", in_the_dark=True)
        screen.goto(f"{idp.issuer}/account")
        look(screen, "account-dark", in_the_dark=True)


def test_nothing_needs_javascript(idp: Operator, client: Application, chromium: Browser) -> None:
    client_id, pkce = registered(idp, client, "The old terminal"), Pkce()
    with page(chromium, java_script_enabled=False) as screen:
        screen.goto(asking(idp, client, client_id, pkce))
        sign_in(screen)
        screen.get_by_role("button", name="Allow", exact=True).click()
        heading(screen, BACK)
        assert exchange(idp, client, client_id, pkce).status_code == 200
        screen.goto(f"{idp.issuer}/account")
        row = screen.get_by_role("listitem").filter(has_text="The old terminal")
        row.get_by_role("button").click()
        expect(row).to_have_count(0)
        screen.get_by_role("button", name="Sign out", exact=True).first.click()
        heading(screen, "You are signed out")


@pytest.mark.exhaustive
def test_a_device_is_connected_and_a_client_signs_the_person_out(
    idp: Operator, client: Application, screen: Page
) -> None:
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    body = {"client_name": "The terminal", "token_endpoint_auth_method": "none", "grant_types": [grant]}
    client_id = httpx2.post(f"{idp.issuer}/register", json=body).raise_for_status().json()["client_id"]
    shown = httpx2.post(f"{idp.issuer}/device_authorization", data={"client_id": client_id}).raise_for_status().json()
    screen.goto(f"{idp.issuer}/device")
    sign_in(screen)
    code = screen.get_by_label("The code that your device shows")
    code.fill("BCDF-BCDF")
    code.press("Enter")
    expect(screen.get_by_role("alert")).to_contain_text("No device shows that code")
    look(screen, "device-refused")
    code.fill(shown["user_code"])
    code.press("Enter")
    expect(screen.get_by_role("main")).to_contain_text("The terminal")
    look(screen, "device")
    screen.get_by_role("button", name="Allow", exact=True).click()
    expect(screen.get_by_role("status")).to_have_text("The device goes on by itself now.")
    form = {"grant_type": grant, "client_id": client_id, "device_code": shown["device_code"]}
    assert httpx2.post(f"{idp.issuer}/token", data=form).status_code == 200
    screen.goto(f"{idp.issuer}/logout")
    heading(screen, "Sign out?")
    look(screen, "sign-out")
    screen.get_by_role("button", name="Sign out").click()
    heading(screen, "You are signed out")
