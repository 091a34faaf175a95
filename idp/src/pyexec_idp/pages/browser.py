"""What binds a browser to us: two cookies, and the mark in every form that only this browser's form can have."""

import hmac
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.responses import Response

from pyexec_idp.domain.calls import Call
from pyexec_idp.domain.secrets import new_secret
from pyexec_idp.keys.pepper import Pepper

FIELD = "csrf"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


class Cookies:
    """The cookies: one holds the sign-in, the other marks the browser, signed in or not.

    On https their names begin with `__Host-`: no neighbour on the same domain can set them, and they never go over
    plain http.
    """

    def __init__(self, issuer: str, pepper: Pepper, lifetime: float) -> None:
        parts = urlsplit(issuer)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._secure = parts.scheme == "https"
        prefix = "__Host-" if self._secure else ""
        self.session_name = f"{prefix}pyexec-idp-session"
        self.browser_name = f"{prefix}pyexec-idp-browser"
        self._pepper = pepper
        self._lifetime = int(lifetime)

    def session(self, call: Call) -> str | None:
        """Return what the cookie of the sign-in holds."""
        return _token(call.cookies, self.session_name)

    def browser(self, call: Call) -> str:
        """Return the browser's mark, a new one where it has none."""
        return _token(call.cookies, self.browser_name) or new_secret()

    def form_mark(self, browser: str, session: str | None) -> str:
        """Return what a form of this browser holds; it does not change while the same person is signed in."""
        return self._pepper.derive("form", f"{browser}\0{session or ''}")

    def is_own_form(self, call: Call) -> bool:
        """Tell whether a form was posted from one of our pages, in this very browser."""
        origin = call.headers.get("origin")
        if origin is not None and origin != self._origin:
            return False
        if call.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            return False
        browser = _token(call.cookies, self.browser_name)
        given = call.filled(FIELD)
        if browser is None or given is None:
            return False
        return hmac.compare_digest(self.form_mark(browser, self.session(call)).encode(), given.encode())

    def keep_browser(self, response: Response, browser: str) -> None:
        """Mark the browser."""
        self._set(response, self.browser_name, browser)

    def begin(self, response: Response, session: str) -> None:
        """Sign in: both cookies are new, so that nobody who knew the old ones is in."""
        self._set(response, self.session_name, session)
        self._set(response, self.browser_name, new_secret())

    def end(self, response: Response) -> None:
        """Sign out."""
        for name in (self.session_name, self.browser_name):
            response.delete_cookie(name, path="/", secure=self._secure, httponly=True, samesite="lax")

    def _set(self, response: Response, name: str, value: str) -> None:
        response.set_cookie(
            name, value, max_age=self._lifetime, path="/", secure=self._secure, httponly=True, samesite="lax"
        )


def _token(cookies: Mapping[str, str], name: str) -> str | None:
    value = cookies.get(name, "")
    return value if _TOKEN.fullmatch(value) is not None else None
