"""The only reader of the process's environment: settings come out as frozen values and are handed down.

Every variable is named `PYEXEC_IDP_…` and listed in `VARIABLES` with its meaning.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyexec_idp.domain.errors import InvalidSettingError
from pyexec_idp.domain.urls import check_issuer
from pyexec_idp.domain.values import Bounds, Lifetimes

PREFIX = "PYEXEC_IDP_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator decides."""

    issuer: str
    home: Path
    database_url: str
    host: str = "127.0.0.1"
    port: int = 8100
    title: str = "PyExec"
    trusted_proxies: str = "127.0.0.1"
    sign_up: bool = False
    tracing: bool = False
    registration: bool = True
    client_documents: bool = True
    redirect_schemes: tuple[str, ...] = ()
    hash_memory_kib: int = 65536
    hash_passes: int = 3
    metadata_seen_within: float = 600.0
    log_level: str = "info"
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One environment variable: what it sets, what it means, how its text is read."""

    name: str
    meaning: str
    default: str
    allowed: str
    read: Callable[[str], Any]
    field: str


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return read


def _seconds(low: int, high: int) -> Callable[[str], float]:
    whole = _whole(low, high)
    return lambda text: float(whole(text))


def _path(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise ValueError
    return path


def _yes_or_no(text: str) -> bool:
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}[text.strip().lower()]


def _schemes(text: str) -> tuple[str, ...]:
    found = tuple(one.strip().lower() for one in text.split(",") if one.strip())
    for one in found:
        if re.fullmatch(r"[a-z][a-z0-9+.-]*", one) is None or one in {"javascript", "data", "file", "http", "vbscript"}:
            raise ValueError
    return found


def _level(text: str) -> str:
    if text.lower() not in {"debug", "info", "warning", "error"}:
        raise ValueError
    return text.lower()


def _variable(setting: str, meaning: str, default: str, allowed: str, read: Callable[[str], Any]) -> Variable:
    name = PREFIX + setting.rpartition(".")[2].upper()
    return Variable(name=name, meaning=meaning, default=default, allowed=allowed, read=read, field=setting)


_DAY = 86400
VARIABLES: tuple[Variable, ...] = (
    _variable(
        "issuer",
        "The URL under which everybody reaches it; it stands in every token. Needed by `serve` and `check`.",
        "none",
        "https, or http on 127.0.0.1 and localhost; without a final slash",
        check_issuer,
    ),
    _variable(
        "home",
        "The folder of keys and of the SQLite database; its owner's only.",
        "~/.local/state/pyexec-idp; /var/lib/pyexec-idp for root",
        "an absolute path",
        _path,
    ),
    _variable(
        "database_url",
        "The database. PostgreSQL needs the extra `postgres`.",
        "SQLite in the home folder",
        "sqlite:///… or postgresql+psycopg://…",
        str,
    ),
    _variable("host", "The address to listen on.", "127.0.0.1", "an address", str),
    _variable("port", "The port to listen on.", "8100", "1 to 65535", _whole(1, 65535)),
    _variable("title", "What people read as the name of the place they sign in at.", "PyExec", "a text", str),
    _variable(
        "trusted_proxies",
        "Whose X-Forwarded-For says who is calling: throttling counts by address.",
        "127.0.0.1",
        "addresses with commas between them, or *",
        str,
    ),
    _variable(
        "sign_up", "Whether people may make themselves an account, at `/sign-up`.", "no", "yes or no", _yes_or_no
    ),
    _variable(
        "tracing",
        "Whether requests are traced with OpenTelemetry, whose own variables say where to. Needs the extra `otel`.",
        "no",
        "yes or no",
        _yes_or_no,
    ),
    _variable("registration", "Whether clients may register themselves (RFC 7591).", "yes", "yes or no", _yes_or_no),
    _variable(
        "client_documents",
        "Whether a client's id may be the https URL of a document that describes it.",
        "yes",
        "yes or no",
        _yes_or_no,
    ),
    _variable(
        "redirect_schemes",
        "Schemes of applications that redirect URIs may have besides https and http to the own machine.",
        "none",
        "schemes with commas between them, such as cursor,vscode",
        _schemes,
    ),
    _variable("log_level", "What goes to stderr.", "info", "debug, info, warning or error", _level),
    _variable(
        "hash_memory_kib", "Memory that a password's hash takes, in KiB.", "65536", "8 to 4194304", _whole(8, 4194304)
    ),
    _variable("hash_passes", "Passes over that memory.", "3", "1 to 100", _whole(1, 100)),
    _variable(
        "metadata_seen_within",
        "Seconds after which everybody has seen a new key: it signs that long after `keys rotate`.",
        "600",
        "0 to 604800",
        _seconds(0, 7 * _DAY),
    ),
    _variable("lifetimes.code", "Seconds an authorization code is good for.", "60", "10 to 600", _seconds(10, 600)),
    _variable(
        "lifetimes.access_token",
        "Seconds an access token is good for; servers that do not ask about it take it until then.",
        "900",
        "10 to 86400",
        _seconds(10, _DAY),
    ),
    _variable("lifetimes.id_token", "Seconds an ID token is good for.", "900", "10 to 86400", _seconds(10, _DAY)),
    _variable(
        "lifetimes.refresh_token_idle",
        "Seconds a refresh token is good for, unless it is used: then its successor is for as long again.",
        "2592000",
        "60 to 31536000",
        _seconds(60, 365 * _DAY),
    ),
    _variable(
        "lifetimes.refresh_grace",
        "Seconds in which a replaced refresh token gives the same successor again, for lost answers and races.",
        "20",
        "0 to 300",
        _seconds(0, 300),
    ),
    _variable("lifetimes.sign_in", "Seconds a sign-in lasts.", "43200", "60 to 2592000", _seconds(60, 30 * _DAY)),
    _variable("lifetimes.device_code", "Seconds a device waits.", "600", "60 to 3600", _seconds(60, 3600)),
    _variable(
        "lifetimes.unused_client",
        "Seconds after which a client that registered itself and never got a token is forgotten.",
        "604800",
        "3600 to 31536000",
        _seconds(3600, 365 * _DAY),
    ),
    _variable("bounds.window", "Seconds that the following are counted in.", "900", "1 to 86400", _seconds(1, _DAY)),
    _variable(
        "bounds.failures_per_account", "Wrong passwords for one name.", "10", "1 to 1000000", _whole(1, 1_000_000)
    ),
    _variable(
        "bounds.failures_per_address", "Wrong passwords from one address.", "50", "1 to 1000000", _whole(1, 1_000_000)
    ),
    _variable(
        "bounds.sign_ups_per_address",
        "Attempts to make an account from one address.",
        "10",
        "1 to 1000000",
        _whole(1, 1_000_000),
    ),
    _variable(
        "bounds.registrations_per_address",
        "Clients that register themselves from one address.",
        "20",
        "1 to 1000000",
        _whole(1, 1_000_000),
    ),
    _variable(
        "bounds.dynamic_clients",
        "Clients that registered themselves, altogether.",
        "10000",
        "1 to 10000000",
        _whole(1, 10_000_000),
    ),
)


def read_settings(environ: Mapping[str, str] | None = None, *, needs_issuer: bool = True) -> Settings:
    """Read the settings.

    Raises:
        InvalidSettingError: One has a value that is not allowed, is not known, or is missing.
    """
    given = os.environ if environ is None else environ
    known = {variable.name: variable for variable in VARIABLES}
    strange = sorted(name for name in given if name.startswith(PREFIX) and name not in known)
    if strange:
        raise InvalidSettingError(f"There is no setting {strange[0]}.", hint="docs/reference/idp-settings.md has all.")
    values = {variable.field: _read(variable, given[name]) for name, variable in known.items() if given.get(name)}
    if "issuer" not in values and needs_issuer:
        raise InvalidSettingError(
            "PYEXEC_IDP_ISSUER is not set.", hint="The URL under which everybody reaches it: https://id.example.com"
        )
    values.setdefault("issuer", "http://127.0.0.1")
    home = values.setdefault("home", _default_home())
    values.setdefault("database_url", f"sqlite:///{home / 'idp.db'}")
    return Settings(
        **{name: value for name, value in values.items() if "." not in name},
        lifetimes=Lifetimes(**_part("lifetimes", values)),
        bounds=Bounds(**_part("bounds", values)),
    )


def _part(group: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name.partition(".")[2]: value for name, value in values.items() if name.startswith(f"{group}.")}


def _read(variable: Variable, text: str) -> Any:
    try:
        return variable.read(text)
    except InvalidSettingError:
        raise
    except (ValueError, KeyError):
        # Never the text of a URL that may hold a password.
        raise InvalidSettingError(f"{variable.name} has a wrong value.", hint=f"Allowed: {variable.allowed}.") from None


def _default_home() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/pyexec-idp")
    return Path("~/.local/state/pyexec-idp").expanduser()
