"""Signing out because a client asks for it (OpenID Connect RP-initiated logout): always with a click of the person."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from starlette.responses import RedirectResponse, Response

from pyexec_idp.domain.calls import Call
from pyexec_idp.domain.errors import WrongTokenError
from pyexec_idp.domain.values import Client
from pyexec_idp.grants.context import Context
from pyexec_idp.keys.signing import ID_TOKEN
from pyexec_idp.pages.browser import Cookies
from pyexec_idp.pages.rendering import Pages, form_targets
from pyexec_idp.pages.sign_in import FOREIGN, SignIns
from pyexec_idp.users.sessions import Sessions

_MOST_FIELDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    client: Client | None
    back: str | None


class Logout:
    """The page and what follows it."""

    def __init__(
        self, *, context: Context, sessions: Sessions, sign_ins: SignIns, cookies: Cookies, pages: Pages
    ) -> None:
        self._context = context
        self._sessions = sessions
        self._sign_ins = sign_ins
        self._cookies = cookies
        self._pages = pages

    def logout(self, call: Call) -> Response:
        """Ask the person, or do what they answered."""
        if call.method == "POST" and call.filled("decision") is not None:
            return self._leave(call)
        pairs = call.query if call.method == "GET" else call.form
        wish = self._wish(dict(pairs))
        if self._sign_ins.who(call) is None and call.method == "GET":
            return self._gone(wish)
        browser = self._cookies.browser(call)
        page = self._pages.show(
            "sign_out",
            form_targets="'self'" if wish.back is None else form_targets(wish.back),
            done=False,
            client_name=None if wish.client is None else wish.client.name,
            mark=self._cookies.form_mark(browser, self._cookies.session(call)),
            query=urlencode(pairs),
        )
        self._cookies.keep_browser(page, browser)
        return page

    def _leave(self, call: Call) -> Response:
        if not self._cookies.is_own_form(call):
            return self._pages.fault(FOREIGN, status=403)
        who = self._sign_ins.who(call)
        if who is not None:
            self._sessions.end(who.user, who.id)
        try:
            asked = dict(parse_qsl(call.filled("asked") or "", max_num_fields=_MOST_FIELDS))
        except ValueError:
            asked = {}
        response = self._gone(self._wish(asked))
        self._cookies.end(response)
        return response

    def _gone(self, wish: _Wish) -> Response:
        if wish.back is not None:
            return RedirectResponse(wish.back, status_code=303)
        return self._pages.show("sign_out", done=True)

    def _wish(self, asked: dict[str, str]) -> _Wish:
        """Return who asks, and where to go afterwards: only where that client has registered, known by its ID token."""
        try:
            claims = self._context.signer.read(asked.get("id_token_hint", ""), ID_TOKEN, may_be_expired=True)
        except WrongTokenError:
            return _Wish(client=None, back=None)
        client = self._context.clients.find(str(claims.get("aud")))
        back = asked.get("post_logout_redirect_uri")
        if (
            client is None
            or back not in client.post_logout_redirect_uris
            or asked.get("client_id", client.id) != client.id
        ):
            return _Wish(client=client, back=None)
        if "state" in asked:
            back = f"{back}{'&' if '?' in back else '?'}{urlencode({'state': asked['state']})}"
        return _Wish(client=client, back=back)
