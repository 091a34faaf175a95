"""The things the identity provider knows. Times are seconds since the epoch, durations are seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

OPENID_SCOPES: Mapping[str, str] = {
    "openid": "Know that it is you",
    "profile": "See your name",
    "email": "See your e-mail address",
    "offline_access": "Keep its access while you are away",
}
"""The scopes that belong to nobody's resource but to the account itself, with their words for people."""


class Origin(StrEnum):
    """How a client came to be known: that decides how far it is trusted."""

    OPERATOR = "operator"
    """Entered by the operator: consent to it is remembered."""
    DYNAMIC = "dynamic"
    """Registered itself (RFC 7591): its name is its own claim."""
    DOCUMENT = "document"
    """Its id is the URL of a document that describes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """For how long things are good."""

    code: float = 60.0
    access_token: float = 15 * 60.0
    id_token: float = 15 * 60.0
    refresh_token_idle: float = 30 * 86400.0
    refresh_grace: float = 20.0
    sign_in: float = 12 * 3600.0
    device_code: float = 600.0
    unused_client: float = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How often something may be done in a window of so many seconds, and how much of it there may be."""

    window: float = 900.0
    failures_per_account: int = 10
    failures_per_address: int = 50
    sign_ups_per_address: int = 10
    registrations_per_address: int = 20
    dynamic_clients: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who signs in. `id` is the subject in tokens; it never changes and says nothing."""

    id: str
    name: str
    display_name: str | None = None
    email: str | None = None
    created_at: float = 0.0
    disabled_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One browser in which somebody is signed in."""

    id: str
    user: User
    created_at: float
    """When the password was given: `auth_time` in tokens."""
    last_seen_at: float
    expires_at: float
    address: str
    user_agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that asks for tokens. Without `scopes` it may ask for any."""

    id: str
    name: str
    origin: Origin
    auth_method: str = "none"
    secret_hash: str | None = field(default=None, repr=False)
    redirect_uris: tuple[str, ...] = ()
    grant_types: tuple[str, ...] = ("authorization_code", "refresh_token")
    scopes: tuple[str, ...] = ()
    post_logout_redirect_uris: tuple[str, ...] = ()
    introspects: tuple[str, ...] = ()
    """The resources whose tokens it may ask about: it is the program behind them."""
    uri: str | None = None
    created_at: float = 0.0
    used_at: float | None = None

    @property
    def is_verified(self) -> bool:
        """Whether the operator knows it."""
        return self.origin is Origin.OPERATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A server that tokens are for. Its URL is their audience; scopes come with words for the consent page."""

    url: str
    name: str
    scopes: Mapping[str, str]
    is_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What somebody allowed a client once; codes and tokens hang on it, and end with it."""

    id: str
    user_id: str
    client_id: str
    scopes: tuple[str, ...]
    resource: str
    auth_time: float
    created_at: float
    used_at: float | None = None
    revoked_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """An authorization code, without itself."""

    hash: str
    grant: Grant
    redirect_uri: str
    challenge: str
    nonce: str | None
    expires_at: float
    used_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshToken:
    """A refresh token, without itself. The grant is its family."""

    hash: str
    grant: Grant
    expires_at: float
    replaced_at: float | None = None
    successor_replaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device that waits for somebody to allow it from another one."""

    code_hash: str
    user_code: str
    client_id: str
    scopes: tuple[str, ...]
    resource: str
    expires_at: float
    interval: float
    polled_at: float | None = None
    grant_id: str | None = None
    denied_at: float | None = None
