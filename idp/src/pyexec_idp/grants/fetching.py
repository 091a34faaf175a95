"""Fetching a document from a URL that a stranger chose, without becoming the stranger's way into our network.

The name is resolved once, every address it has must be one of the public internet, and the connection goes to one of
those addresses: asking again could answer differently. No redirects, no proxies, little time, few bytes.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

_SECONDS = 5.0
_LARGEST = 16 * 1024
_AT_ONCE = 4
_OK = 200
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class UnfetchableError(Exception):
    """The document cannot be had; never says more than that to who asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What was fetched, and for how many seconds it may be kept, as far as its server says."""

    body: bytes
    max_age: float | None


class Fetcher:
    """Fetches documents over https."""

    def __init__(
        self,
        is_allowed: Callable[[Address], bool] | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._is_allowed = is_allowed or is_public
        self._context = context or ssl.create_default_context()
        self._turns = threading.BoundedSemaphore(_AT_ONCE)

    def fetch(self, url: str) -> Document:
        """Return the document at a URL.

        Raises:
            UnfetchableError: It cannot be had, or not like this.
        """
        if not self._turns.acquire(timeout=_SECONDS):
            raise UnfetchableError("Too many at once.")
        try:
            return self._fetch(url)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise UnfetchableError(type(error).__name__) from error
        finally:
            self._turns.release()

    def _fetch(self, url: str) -> Document:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 443
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [ipaddress.ip_address(one[4][0]) for one in found]
        if not addresses or not all(self._is_allowed(one) for one in addresses):
            raise UnfetchableError("The address is not public.")
        until = time.monotonic() + _SECONDS
        connection = _Pinned(host, port, str(addresses[0]), self._context)
        try:
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            connection.request("GET", path, headers={"Accept": "application/json", "User-Agent": "pyexec-idp"})
            answer = connection.getresponse()
            kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
            if answer.status != _OK or not (kind == "application/json" or kind.endswith("+json")):
                raise UnfetchableError("The answer is no document.")
            return Document(body=_read(answer, until), max_age=_max_age(answer.getheader("Cache-Control") or ""))
        finally:
            connection.close()


class _Pinned(http.client.HTTPSConnection):
    """A connection to an address that was looked at, with the certificate of the name."""

    def __init__(self, host: str, port: int, address: str, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=_SECONDS, context=context)
        self._address = address
        self._tls = context

    def connect(self) -> None:
        """Connect."""
        plain = socket.create_connection((self._address, self.port), _SECONDS)
        self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)


def is_public(address: Address) -> bool:
    """Tell whether an address is one of the public internet, with whatever address it carries inside."""
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if address in _NAT64:
            inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inside is not None and not is_public(inside):
            return False
    return address.is_global and not address.is_multicast


def _read(answer: http.client.HTTPResponse, until: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := answer.read1(4096):
        size += len(part)
        if size > _LARGEST or time.monotonic() > until:
            raise UnfetchableError("The document is too large or too slow.")
        parts.append(part)
    return b"".join(parts)


def _max_age(cache_control: str) -> float | None:
    for one in cache_control.lower().split(","):
        name, _, value = one.strip().partition("=")
        if name in {"no-store", "no-cache"}:
            return 0.0
        if name == "max-age" and value.isdecimal():
            return float(value[:10])
    return None
