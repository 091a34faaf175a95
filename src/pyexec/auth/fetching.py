"""Asking issuers for documents, without becoming anybody's way into our network.

An operator names the issuer; what its metadata name is followed only where the issuer itself might be: https to public
addresses, to private ones where the operator says so, and to the own machine for an issuer on the own machine. The name
is resolved once and the connection goes to an address that was looked at: asking again could answer differently. No
redirects, no proxies, little time, few bytes.
"""

import ipaddress
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2

from pyexec.auth.refusals import IssuerUnavailableError
from pyexec.auth.strict_json import strict_object
from pyexec.domain.authorization import LOOPBACK_HOSTS, is_loopback_url

SECONDS = 5.0
LARGEST = 256 * 1024
_AT_ONCE = 16
_OK = 200
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Where documents of one issuer may lie."""

    loopback: bool = False
    private: bool = False


def reach_of(issuer: str, *, private: bool) -> Reach:
    """Return where documents of an issuer may lie."""
    return Reach(loopback=is_loopback_url(issuer), private=private)


class Fetcher:
    """Fetches JSON documents."""

    def __init__(self, is_public: Callable[[str], bool], context: ssl.SSLContext | None = None) -> None:
        self._is_public = is_public
        self._context = context or ssl.create_default_context()
        self._turns = anyio.CapacityLimiter(_AT_ONCE)

    async def get(self, url: str, reach: Reach) -> dict[str, Any]:
        """Return the object at a URL.

        Raises:
            IssuerUnavailableError: It cannot be had, or not like this.
        """
        return await self._fetch("GET", url, reach, {}, None)

    async def post(self, url: str, reach: Reach, form: Mapping[str, str], user: tuple[str, str]) -> dict[str, Any]:
        """Send a form as a client with a secret; return the object that is answered.

        Raises:
            IssuerUnavailableError: It cannot be had, or not like this.
        """
        return await self._fetch("POST", url, reach, form, httpx2.BasicAuth(*user))

    async def _fetch(
        self, method: str, url: str, reach: Reach, form: Mapping[str, str], auth: httpx2.BasicAuth | None
    ) -> dict[str, Any]:
        try:
            with anyio.fail_after(SECONDS):
                async with self._turns:
                    body = await self._body(method, url, reach, form, auth)
        except TimeoutError:
            raise IssuerUnavailableError(f"{url} does not answer within {SECONDS:g} seconds.") from None
        except (OSError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            # Never its text: that of a request may hold what was sent.
            raise IssuerUnavailableError(f"{url} cannot be asked: {type(error).__name__}.") from None
        try:
            return strict_object(body)
        except ValueError:
            raise IssuerUnavailableError(f"{url} answers no JSON object.") from None

    async def _body(
        self, method: str, url: str, reach: Reach, form: Mapping[str, str], auth: httpx2.BasicAuth | None
    ) -> bytes:
        pinned, host, netloc = await self._pin(url, reach)
        headers = {"host": netloc, "accept": "application/json", "accept-encoding": "identity"}
        async with httpx2.AsyncClient(verify=self._context, trust_env=False, timeout=SECONDS) as client:
            request = client.build_request(
                method, pinned, headers=headers, data=dict(form) or None, extensions={"sni_hostname": host}
            )
            answer = await client.send(request, auth=auth, stream=True, follow_redirects=False)
            try:
                if answer.status_code != _OK or answer.headers.get("content-encoding", "identity") != "identity":
                    raise IssuerUnavailableError(f"{url} answers {answer.status_code}.")
                body = bytearray()
                async for part in answer.aiter_raw():
                    body += part
                    if len(body) > LARGEST:
                        raise IssuerUnavailableError(f"{url} answers more than {LARGEST} bytes.")
                return bytes(body)
            finally:
                await answer.aclose()

    async def _pin(self, url: str, reach: Reach) -> tuple[str, str, str]:
        parts = urlsplit(url)
        host = parts.hostname or ""
        try:
            usual = _PORTS[parts.scheme]
            port = parts.port or usual
        except (KeyError, ValueError):
            raise IssuerUnavailableError(f"{url} is no address to ask: only https is.") from None
        if "@" in parts.netloc or (parts.scheme == "http" and not (reach.loopback and host in LOOPBACK_HOSTS)):
            raise IssuerUnavailableError(f"{url} is no address to ask: only https is.")
        found = [str(one[4][0]) for one in await anyio.getaddrinfo(host, port, type=1)]
        if not found or not all(self._allows(one, reach) for one in found):
            raise IssuerUnavailableError(f"{url} leads to an address that an issuer may not have.")
        address = f"[{found[0]}]" if ":" in found[0] else found[0]
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{address}:{port}{parts.path or '/'}{query}", host, parts.netloc

    def _allows(self, text: str, reach: Reach) -> bool:
        if self._is_public(text):
            return True
        address = ipaddress.ip_address(text)
        if address.is_loopback:
            return reach.loopback
        return reach.private and address.is_private and not (address.is_link_local or address.is_unspecified)
