"""The authorization endpoint as people see it, and the page where devices are allowed."""

from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.responses import RedirectResponse, Response

from pyexec_idp.domain.calls import Call
from pyexec_idp.domain.errors import TooManyError
from pyexec_idp.domain.values import Bounds, Device, SignIn
from pyexec_idp.grants.authorizations import PATH, Authorizations, GoTo, Next, SignInFirst, Unsafe
from pyexec_idp.grants.context import Context
from pyexec_idp.grants.device import allow_device, normal_user_code
from pyexec_idp.grants.scopes import Asked
from pyexec_idp.pages.browser import Cookies
from pyexec_idp.pages.rendering import Pages, form_targets
from pyexec_idp.pages.sign_in import FOREIGN, SignIns, path_with
from pyexec_idp.stores.attempts import AttemptStore

_NO_DEVICE = "No device shows that code, or it has waited too long."
_MOST_FIELDS = 100


class Consent:
    """From a client's question to the person's answer."""

    def __init__(
        self, *, context: Context, authorizations: Authorizations, sign_ins: SignIns, cookies: Cookies, pages: Pages
    ) -> None:
        self._context = context
        self._authorizations = authorizations
        self._sign_ins = sign_ins
        self._cookies = cookies
        self._pages = pages

    def authorize(self, call: Call) -> Response:
        """Look at what a client asks."""
        if call.method == "POST":  # Once more as a GET: only then does the browser send its cookies.
            return RedirectResponse(self._context.issuer + path_with(PATH, call.form), status_code=303)
        who = self._sign_ins.who(call)
        return self._go_on(call, self._authorizations.consider(call.query, who), who)

    def consent(self, call: Call) -> Response:
        """Take the person's decision."""
        who = self._sign_ins.who(call)
        if who is None or not self._cookies.is_own_form(call):
            return self._pages.fault(FOREIGN, status=403)
        try:
            pairs = tuple(parse_qsl(call.filled("asked") or "", keep_blank_values=True, max_num_fields=_MOST_FIELDS))
        except ValueError:
            pairs = ()
        allow = call.filled("decision") == "allow"
        return self._go_on(call, self._authorizations.decide(pairs, who, allow=allow), who)

    def _go_on(self, call: Call, following: Next, who: SignIn | None) -> Response:
        if isinstance(following, Unsafe):
            return self._pages.fault(following.reason)
        if isinstance(following, GoTo):
            return RedirectResponse(following.url, status_code=303)
        if isinstance(following, SignInFirst) or who is None:
            return self._sign_ins.ask(call, path_with(PATH, following.pairs), leads_to=following.redirect_uri)
        browser = self._cookies.browser(call)
        page = self._pages.show(
            "consent",
            form_targets=form_targets(following.redirect_uri),
            mark=self._cookies.form_mark(browser, self._cookies.session(call)),
            asked=following,
            query=urlencode(following.pairs),
            user=who.user,
        )
        self._cookies.keep_browser(page, browser)
        return page


class Devices:
    """Where people type what their device shows."""

    def __init__(
        self,
        *,
        context: Context,
        attempts: AttemptStore,
        bounds: Bounds,
        sign_ins: SignIns,
        cookies: Cookies,
        pages: Pages,
    ) -> None:
        self._context = context
        self._attempts = attempts
        self._bounds = bounds
        self._sign_ins = sign_ins
        self._cookies = cookies
        self._pages = pages

    def device(self, call: Call) -> Response:
        """Ask for the code, then show what the device wants. A code in the address is typed in, not sent off."""
        who = self._sign_ins.who(call)
        if who is None:
            return self._sign_ins.ask(call, path_with("/device", call.query))
        if call.method == "GET":
            return self._show(call, who, typed=(call.asked("user_code") or "")[:20])
        if not self._cookies.is_own_form(call):
            return self._pages.fault(FOREIGN, status=403)
        try:
            device = self._find(call, who)
        except TooManyError as error:
            return self._pages.fault(error.message, status=429)
        return self._show(call, who, device=device, fault="" if device is not None else _NO_DEVICE)

    def decide(self, call: Call) -> Response:
        """Take the person's decision."""
        who = self._sign_ins.who(call)
        if who is None or not self._cookies.is_own_form(call):
            return self._pages.fault(FOREIGN, status=403)
        try:
            device = self._find(call, who)
        except TooManyError as error:
            return self._pages.fault(error.message, status=429)
        if device is None:
            return self._show(call, who, fault=_NO_DEVICE)
        if call.filled("decision") == "allow":
            allow_device(self._context, device, who)
            return self._show(call, who, done="The device goes on by itself now.")
        self._context.devices.deny(device, self._context.now())
        return self._show(call, who, done="The device gets nothing.")

    def _find(self, call: Call, who: SignIn) -> Device | None:
        now, key = self._context.now(), f"device:{who.user.id}"
        if self._attempts.count(key, now - self._bounds.window) >= self._bounds.failures_per_account:
            raise TooManyError("Too many codes were wrong. Wait a quarter of an hour.")
        device = self._context.devices.typed(normal_user_code(call.filled("user_code") or ""), now)
        if device is None:
            self._attempts.add((key,), now)
        return device

    def _show(
        self,
        call: Call,
        who: SignIn,
        *,
        device: Device | None = None,
        typed: str = "",
        fault: str = "",
        done: str = "",
    ) -> Response:
        browser = self._cookies.browser(call)
        shown: dict[str, Any] = {} if device is None else self._described(device)
        page = self._pages.show(
            "device",
            status=400 if fault else 200,
            mark=self._cookies.form_mark(browser, self._cookies.session(call)),
            user=who.user,
            device=device,
            typed=typed,
            fault=fault,
            done=done,
            **shown,
        )
        self._cookies.keep_browser(page, browser)
        return page

    def _described(self, device: Device) -> dict[str, Any]:
        client = self._context.clients.find(device.client_id)
        resource = self._context.register.named(device.resource)
        return {
            "client_name": device.client_id if client is None else client.name,
            "resource_name": None if resource is None else resource.name,
            "words": self._context.register.words(Asked(scopes=device.scopes, resource=device.resource)),
        }
