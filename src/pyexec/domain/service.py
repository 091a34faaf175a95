"""What an operator decides about the server that many use over HTTP."""

from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pyexec.domain.limits import MEGABYTE

OnDisconnect = Literal["cancel", "detach"]

DANGER = "--allow-anyone-from-anywhere"
"""What has to be said to serve without authorization on an address that others reach."""

LOCALHOST = "localhost"
DEFAULT_ADDRESS = "127.0.0.1:8765"
LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. Port 0: any that is free."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it; a name other than `localhost` may mean anything."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How the server is reached, and what it takes from one user. Sizes are bytes, times seconds.

    Attributes:
        address: Where it listens.
        anyone: Whether it may be reached from elsewhere although nobody has to say who they are.
        hosts: Names by which clients may call it, besides those of the machine itself; `*.example.com` is any below.
        origins: Web pages that may call it from a browser, as `https://example.com`.
        body: The largest request.
        drain: How long open calls may go on once it has been told to end.
        on_disconnect: What becomes of a run whose client closes the stream of a 2026-07-28 call.
        rate: How many requests one user may make in a minute; 0: any number.
        proxies: From whom forwarded headers are believed: addresses or networks.
        certificate, key: For TLS; both or neither.
        metrics: Where metrics are told to anyone who asks there; None: nowhere.
        metrics_token: What has to be said to be told them at `/metrics`; None: there is no such route.
        audit: Where what was run is written down; None: in the state folder.
        traces: Whether traces are sent where OpenTelemetry's variables say.
    """

    address: Address = field(default_factory=lambda: parse_address(DEFAULT_ADDRESS))
    anyone: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    body: int = 32 * MEGABYTE
    drain: float = 20.0
    on_disconnect: OnDisconnect = "cancel"
    rate: int = 1200
    proxies: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    metrics: Address | None = None
    metrics_token: str | None = field(default=None, repr=False)
    audit: Path | None = None
    traces: bool = False


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine itself, and can be nothing else."""
    return host == LOCALHOST or (is_ip(host) and ip_address(host).is_loopback)


def is_ip(host: str) -> bool:
    """Tell whether a host is given by its address."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def parse_address(text: str) -> Address:
    """Read `HOST:PORT`, `[::1]:PORT`, `:PORT` or `PORT`; without a host it is 127.0.0.1.

    Raises:
        ValueError: It is none.
    """
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"no address: {text!r}")
    if not port.isdecimal() or int(port) > LARGEST_PORT or (colon and not port):
        raise ValueError(f"no port: {text!r}")
    return Address(host.lower() or "127.0.0.1", int(port))


def parse_hosts(text: str) -> tuple[str, ...]:
    """Read names of hosts with commas between them; a port that is given with one is of no account.

    Raises:
        ValueError: One is none.
    """
    found: list[str] = []
    for part in _parts(text):
        if "/" in part:
            raise ValueError(f"no host: {part!r}")
        name = part.lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        elif name.count(":") == 1:
            name = name.partition(":")[0]
        if not name or "*" in name.removeprefix("*.") or name == "*.":
            raise ValueError(f"no host: {part!r}")
        found.append(name)
    return tuple(found)


def parse_origins(text: str) -> tuple[str, ...]:
    """Read origins of web pages with commas between them.

    Raises:
        ValueError: One is none.
    """
    found: list[str] = []
    for part in _parts(text):
        url = urlsplit(part)
        if url.scheme not in ("http", "https") or not url.hostname or url.path.strip("/") or url.query or url.fragment:
            raise ValueError(f"no origin: {part!r}")
        found.append(part.rstrip("/").lower())
    return tuple(found)


def parse_proxies(text: str) -> tuple[str, ...]:
    """Read addresses and networks with commas between them.

    Raises:
        ValueError: One is none.
    """
    return tuple(str(ip_network(part)) if "/" in part else str(ip_address(part)) for part in _parts(text))


def parse_on_disconnect(text: str) -> OnDisconnect:
    """Read what becomes of a run whose client closes its stream.

    Raises:
        ValueError: It is neither.
    """
    match text.strip().lower():
        case "cancel":
            return "cancel"
        case "detach":
            return "detach"
        case _:
            raise ValueError(f"neither: {text!r}")


def parse_switch(text: str) -> bool:
    """Read `on` or `off`.

    Raises:
        ValueError: It is neither.
    """
    return ("off", "on").index(text.strip().lower()) == 1


def _parts(text: str) -> list[str]:
    """Return what stands between commas; `none` is nothing."""
    if text.strip().lower() == "none":
        return []
    return [part for piece in text.split(",") if (part := piece.strip())]
