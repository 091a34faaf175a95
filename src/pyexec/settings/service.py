"""The variables by which an operator sets how the server is reached over HTTP."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.limits import MEGABYTE
from pyexec.domain.service import (
    DANGER,
    ServiceSettings,
    parse_address,
    parse_hosts,
    parse_on_disconnect,
    parse_origins,
    parse_proxies,
    parse_switch,
)
from pyexec.settings.reading import Variable, number, whole

SHORTEST_TOKEN = 16


def _token(text: str) -> str | None:
    if text == "none":
        return None
    if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError
    return text


def _file(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise ValueError
    return path


SERVICE_VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="PYEXEC_HTTP_HOSTS",
        meaning="Names by which clients may call a server over HTTP, besides this machine's own.",
        default="none",
        allowed="names with commas between them; *.example.com is any below that one",
        read=parse_hosts,
        limit="hosts",
    ),
    Variable(
        name="PYEXEC_HTTP_ORIGINS",
        meaning="Web pages that may call it from a browser.",
        default="none",
        allowed="origins such as https://example.com with commas between them",
        read=parse_origins,
        limit="origins",
    ),
    Variable(
        name="PYEXEC_HTTP_BODY_MB",
        meaning="The largest request it takes, in MB.",
        default="32",
        allowed="a whole number between 1 and 1024",
        read=whole(1, 1024, MEGABYTE),
        limit="body",
    ),
    Variable(
        name="PYEXEC_HTTP_PROXIES",
        meaning="Proxies whose forwarded headers it believes.",
        default="none",
        allowed="IP addresses and networks with commas between them",
        read=parse_proxies,
        limit="proxies",
    ),
    Variable(
        name="PYEXEC_HTTP_RATE",
        meaning="How many requests one user may make in a minute, a sixth of them at once; 0: any number.",
        default="1200",
        allowed="a whole number between 0 and 1000000",
        read=whole(0, 1_000_000),
        limit="rate",
    ),
    Variable(
        name="PYEXEC_DRAIN_SECONDS",
        meaning="How long open calls may go on once the server has been told to end; jobs go on in any case.",
        default="20",
        allowed="a number between 0 and 3600",
        read=number(0, 3600),
        limit="drain",
    ),
    Variable(
        name="PYEXEC_ON_DISCONNECT",
        meaning="What becomes of a run when its client closes the stream of a 2026-07-28 call; jobs always go on.",
        default="cancel",
        allowed="cancel or detach",
        read=parse_on_disconnect,
        limit="on_disconnect",
    ),
    Variable(
        name="PYEXEC_METRICS_TOKEN",
        meaning="The bearer token with which `/metrics` answers; without one there is no such route.",
        default="none",
        allowed=f"at least {SHORTEST_TOKEN} printable characters without spaces",
        read=_token,
        limit="metrics_token",
        secret=True,
    ),
    Variable(
        name="PYEXEC_AUDIT_LOG",
        meaning="Where a server over HTTP writes down who ran what.",
        default="audit.jsonl in the state folder",
        allowed="an absolute path",
        read=_file,
        limit="audit",
    ),
    Variable(
        name="PYEXEC_TRACES",
        meaning="Whether it sends traces where OpenTelemetry's variables say; needs `mcp-pyexec[otel]`.",
        default="off",
        allowed="on or off",
        read=parse_switch,
        limit="traces",
    ),
)


def service_settings(given: Mapping[str, Any], flags: Mapping[str, Any]) -> ServiceSettings:
    """Return the settings of the service: what its command line says wins over what the variables say.

    Raises:
        InvalidArgumentError: Two values contradict each other.
    """
    own = {field.name for field in fields(ServiceSettings)}
    merged = {name: value for name, value in {**given, **flags}.items() if name in own}
    found = ServiceSettings(**merged)
    if (found.certificate is None) != (found.key is None):
        raise InvalidArgumentError(
            "--tls-certificate and --tls-key belong together; one of them is missing.",
            hint="Leave both out behind a proxy that does TLS.",
        )
    return found


def read_flag(name: str, text: str) -> Any:
    """Read the value of an option of `pyexec serve`.

    Raises:
        InvalidArgumentError: It has a value that is not allowed.
    """
    read, allowed = _FLAGS[name]
    try:
        return read(text)
    except ValueError:
        raise InvalidArgumentError(f"{name} is {text!r}; it must be {allowed}.") from None


_ADDRESS = "HOST:PORT, such as 127.0.0.1:8765"
_FLAGS = {
    "--http": (parse_address, _ADDRESS),
    "--metrics": (parse_address, _ADDRESS),
    "--allowed-host": (parse_hosts, "names with commas between them"),
    "--allowed-origin": (parse_origins, "origins such as https://example.com with commas between them"),
    "--trusted-proxy": (parse_proxies, "IP addresses and networks with commas between them"),
}


def require_safe(settings: ServiceSettings, *, authorized: bool) -> None:
    """Refuse to serve everybody without being told so.

    Raises:
        InvalidArgumentError: Others reach this address, and nobody has to say who they are.
    """
    if authorized or settings.anyone or settings.address.is_loopback:
        return
    raise InvalidArgumentError(
        f"Without authorization pyexec serves on loopback only, and {settings.address.host} is not: "
        "anyone who reaches it could run code here.",
        hint=f"Turn authorization on, listen on 127.0.0.1, or say {DANGER} if that is what you want.",
    )
