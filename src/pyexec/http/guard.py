"""Which names this server goes by, and which web pages may call it.

A page whose name has been bound to this machine's address (DNS rebinding) calls with a name of its own. So a name has
to be this machine's, or one that the operator has named; and a page has to come from here, or be named.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from pyexec.domain.service import LOCALHOST, ServiceSettings, is_ip, is_loopback
from pyexec.http.answers import refusal

MOST_KNOWN = 256
"""Names that were found to be ours before; almost all clients use one of a few."""

_PORTS = {"http": 80, "https": 443}


class Guard:
    """Refuses requests under foreign names and from foreign pages, on every route."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._settings = settings
        self._known: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_ours(host):
            answer = refusal(
                scope,
                403,
                "host_not_allowed",
                "This server does not go by the name in the Host header; "
                "its operator can allow it with --allowed-host.",
            )
            await answer(scope, receive, send)
        elif origin is not None and not self._may_call(origin, scope["scheme"], host):
            answer = refusal(
                scope,
                403,
                "origin_not_allowed",
                "Pages of this origin may not call this server; its operator can allow them with --allowed-origin.",
            )
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_ours(self, host: str) -> bool:
        if host in self._known:
            return True
        found = self._goes_by(_hostname(host))
        if found and len(self._known) < MOST_KNOWN:
            self._known.add(host)
        return found

    def _goes_by(self, name: str | None) -> bool:
        if not name:
            return False
        own = self._settings.address
        if is_loopback(name) or name == own.host:
            return True
        # By an address nobody is led astray, but who is on loopback is not called by that of another machine.
        if is_ip(name) and not own.is_loopback:
            return True
        return any(_matches(name, allowed) for allowed in self._settings.hosts)

    def _may_call(self, origin: str, scheme: str, host: str) -> bool:
        if origin.lower() in self._settings.origins:
            return True
        theirs, ours = _place(origin), _place(f"{scheme}://{host}")
        return theirs is not None and theirs == ours


def _matches(name: str, allowed: str) -> bool:
    return name == allowed or (allowed.startswith("*.") and name.endswith(allowed[1:]))


def _hostname(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _place(origin: str) -> tuple[str, str, int | None] | None:
    """Return what makes two origins the same; None for one that is none, such as `null`."""
    try:
        url = urlsplit(origin)
        port = url.port
    except ValueError:
        return None
    if url.scheme not in _PORTS or not url.hostname or url.path or url.query or url.fragment or url.username:
        return None
    host = LOCALHOST if is_loopback(url.hostname) else url.hostname
    return url.scheme, host, port or _PORTS[url.scheme]
