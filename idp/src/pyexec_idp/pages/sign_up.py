"""Making oneself an account, where the operator lets people do so."""

from starlette.responses import Response

from pyexec_idp.domain.calls import Call
from pyexec_idp.domain.errors import InvalidValueError, TooManyError, UserExistsError
from pyexec_idp.pages.browser import Cookies
from pyexec_idp.pages.rendering import Pages, form_targets
from pyexec_idp.pages.sign_in import FOREIGN, SignIns, plain_uri, safe_path
from pyexec_idp.users.passwords import SHORTEST
from pyexec_idp.users.people import People

_DIFFERENT = "The two passwords are not the same."
_LONGEST_NAME = 100


class SignUps:
    """The page and what follows it. That a name is taken can be seen here, which limits by address make slow."""

    def __init__(self, *, people: People, sign_ins: SignIns, cookies: Cookies, pages: Pages) -> None:
        self._people = people
        self._sign_ins = sign_ins
        self._cookies = cookies
        self._pages = pages

    def sign_up(self, call: Call) -> Response:
        """Show the form, or make the account that it asks for, and sign in."""
        if call.method == "GET":
            return self._ask(call, call.asked("to"), call.asked("leads_to"))
        to, leads_to = call.filled("to"), call.filled("leads_to")
        if not self._cookies.is_own_form(call):
            return self._ask(call, to, leads_to, fault=FOREIGN, status=403)
        password = call.filled("password") or ""
        if password != call.filled("again"):
            return self._ask(call, to, leads_to, fault=_DIFFERENT, status=400)
        called = "".join(one for one in call.filled("called") or "" if one.isprintable()).strip()[:_LONGEST_NAME]
        try:
            user = self._people.sign_up(call.filled("user") or "", password, call.address, display_name=called or None)
        except (InvalidValueError, UserExistsError) as error:
            fault = error.message if error.hint is None else f"{error.message} {error.hint}"
            return self._ask(call, to, leads_to, fault=fault, status=400)
        except TooManyError as error:
            return self._ask(call, to, leads_to, fault=error.message, status=429)
        return self._sign_ins.begin(call, user, safe_path(to or "/account"))

    def _ask(self, call: Call, to: str | None, leads_to: str | None, *, fault: str = "", status: int = 200) -> Response:
        browser = self._cookies.browser(call)
        onward = plain_uri(leads_to)
        page = self._pages.show(
            "sign_up",
            status=status,
            form_targets="'self'" if onward is None else form_targets(onward),
            leads_to=onward or "",
            to=safe_path(to or "/account"),
            mark=self._cookies.form_mark(browser, self._cookies.session(call)),
            user=(call.filled("user") or "")[:_LONGEST_NAME],
            called=(call.filled("called") or "")[:_LONGEST_NAME],
            shortest=SHORTEST,
            fault=fault,
        )
        self._cookies.keep_browser(page, browser)
        return page
