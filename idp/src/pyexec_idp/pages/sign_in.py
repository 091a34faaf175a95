"""Signing in and out, and the account page."""

import re
import time
from urllib.parse import urlencode, urlsplit

from starlette.responses import RedirectResponse, Response

from pyexec_idp.domain.calls import Call
from pyexec_idp.domain.errors import TooManyError
from pyexec_idp.domain.values import Grant, SignIn, User
from pyexec_idp.grants.context import Context
from pyexec_idp.grants.scopes import Asked
from pyexec_idp.pages.agents import named
from pyexec_idp.pages.browser import Cookies
from pyexec_idp.pages.rendering import Pages, form_targets
from pyexec_idp.users.people import People
from pyexec_idp.users.sessions import Sessions

WRONG = "The user name or the password is wrong."
FOREIGN = "This form did not come from this browser, or is too old."
_URI = re.compile(r"[A-Za-z0-9+.:/?&=%\[\]_~-]+")
_AFTER = ("/authorize", "/account", "/device", "/logout")
"""Where a sign-in may lead: our own pages, and nowhere else."""


class SignIns:
    """Who is before the screen."""

    def __init__(
        self,
        *,
        context: Context,
        people: People,
        sessions: Sessions,
        cookies: Cookies,
        pages: Pages,
        offers_sign_up: bool = False,
    ) -> None:
        self._context = context
        self._offers_sign_up = offers_sign_up
        self._people = people
        self._sessions = sessions
        self._cookies = cookies
        self._pages = pages

    def who(self, call: Call) -> SignIn | None:
        """Return who is signed in."""
        return self._sessions.find(self._cookies.session(call))

    def ask(
        self,
        call: Call,
        to: str,
        *,
        leads_to: str | None = None,
        user: str = "",
        fault: str = "",
        status: int = 200,
    ) -> Response:
        """Return the page to sign in at; `leads_to` is the client that the browser may go on to afterwards."""
        browser = self._cookies.browser(call)
        mark = self._cookies.form_mark(browser, self._cookies.session(call))
        page = self._pages.show(
            "sign_in",
            status=status,
            form_targets="'self'" if leads_to is None else form_targets(leads_to),
            leads_to=leads_to or "",
            mark=mark,
            to=to,
            user=user,
            fault=fault,
            sign_up=path_with("/sign-up", (("to", to), ("leads_to", leads_to or ""))) if self._offers_sign_up else "",
        )
        self._cookies.keep_browser(page, browser)
        return page

    def sign_in(self, call: Call) -> Response:
        """Sign somebody in."""
        to = safe_path(call.filled("to") or "/account")
        leads_to = plain_uri(call.filled("leads_to"))
        if not self._cookies.is_own_form(call):
            return self.ask(call, to, leads_to=leads_to, fault=FOREIGN, status=403)
        name, password = call.filled("user") or "", call.filled("password") or ""
        try:
            user = self._people.check(name, password, call.address)
        except TooManyError as error:
            return self.ask(call, to, leads_to=leads_to, user=name[:100], fault=error.message, status=429)
        if user is None:
            return self.ask(call, to, leads_to=leads_to, user=name[:100], fault=WRONG, status=401)
        return self.begin(call, user, to)

    def begin(self, call: Call, user: User, to: str) -> Response:
        """Sign in whoever that is, and go on to there."""
        before = self.who(call)
        if before is not None:
            self._sessions.end(before.user, before.id)
        agent = call.headers.get("user-agent", "")
        response = RedirectResponse(self._context.issuer + to, status_code=303)
        self._cookies.begin(response, self._sessions.begin(user, address=call.address, user_agent=agent))
        return response

    def sign_out(self, call: Call) -> Response:
        """Sign out here."""
        who = self.who(call)
        if not self._cookies.is_own_form(call):
            return self._pages.fault(FOREIGN, status=403)
        if who is not None:
            self._sessions.end(who.user, who.id)
        response = self._pages.show("sign_out", done=True)
        self._cookies.end(response)
        return response

    # -- account ---------------------------------------------------------------------------------------------------

    def account(self, call: Call) -> Response:
        """Show what was allowed, and where the person is signed in."""
        who = self.who(call)
        if who is None:
            return self.ask(call, "/account")
        browser = self._cookies.browser(call)
        page = self._pages.show(
            "account",
            mark=self._cookies.form_mark(browser, self._cookies.session(call)),
            user=who.user,
            grants=[self._shown(one) for one in self._context.grants.of(who.user.id)],
            sign_ins=[
                {
                    "id": one.id,
                    "address": one.address or "an unknown address",
                    "agent": named(one.user_agent),
                    "since": _day(one.created_at),
                    "seen": _day(one.last_seen_at),
                    "is_this": one.id == who.id,
                }
                for one in self._sessions.of(who.user)
            ],
        )
        self._cookies.keep_browser(page, browser)
        return page

    def revoke(self, call: Call) -> Response:
        """End what was allowed to a client."""
        who = self.who(call)
        if who is None or not self._cookies.is_own_form(call):
            return self._pages.fault(FOREIGN, status=403)
        grant = self._context.grants.get(call.filled("grant") or "")
        if grant is not None and grant.user_id == who.user.id:
            self._context.grants.revoke_all(who.user.id, self._context.now(), client_id=grant.client_id)
            self._context.audit.note("access_ended", user_id=who.user.id, client_id=grant.client_id)
        return RedirectResponse(f"{self._context.issuer}/account", status_code=303)

    def sign_out_elsewhere(self, call: Call) -> Response:
        """Sign out in another browser."""
        who = self.who(call)
        if who is None or not self._cookies.is_own_form(call):
            return self._pages.fault(FOREIGN, status=403)
        self._sessions.end(who.user, call.filled("sign_in") or "")
        return RedirectResponse(f"{self._context.issuer}/account", status_code=303)

    def _shown(self, grant: Grant) -> dict[str, str]:
        client = self._context.clients.known(grant.client_id)
        resource = self._context.register.named(grant.resource)
        words = self._context.register.words(Asked(scopes=grant.scopes, resource=grant.resource))
        return {
            "id": grant.id,
            "name": grant.client_id if client is None else client.name,
            "words": ", ".join(words.values()),
            "resource": "your account" if resource is None else resource.name,
            "since": _day(grant.created_at),
            "used": "" if grant.used_at is None else _day(grant.used_at),
        }


def safe_path(to: str) -> str:
    """Return where to go after the sign-in: a page of ours, whatever was asked."""
    parts = urlsplit(to)
    fits = not parts.scheme and not parts.netloc and parts.path in _AFTER and to.isprintable() and "\\" not in to
    return to if fits and to.startswith("/") and not to.startswith("//") else "/account"


def plain_uri(uri: str | None) -> str | None:
    """Return what goes into a policy: nothing that could end it and begin another."""
    return uri if uri and _URI.fullmatch(uri) is not None else None


def path_with(path: str, pairs: tuple[tuple[str, str], ...]) -> str:
    """Return a path with a query."""
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
