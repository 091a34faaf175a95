"""What an operator decides about tokens: whose count, what must be in them, and who is asked about them."""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512", "EdDSA", "Ed25519")
"""Signatures that a token may have. None with a shared secret: whoever checks such a token can make one."""

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")

FIRST_SCOPES = ("python:execute", "jobs:read")

LONGEST_REVOCATION = 60.0
"""Seconds within which a revoked token no longer counts, at the most."""

_URL_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Introspection:
    """As whom an issuer is asked about tokens (RFC 7662); where, unless its metadata say."""

    client_id: str
    client_secret: str = field(repr=False)
    endpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerPolicy:
    """One issuer whose tokens count, and what its tokens must be like.

    Attributes:
        url: Its name, compared letter by letter.
        audience: One of these must be in `aud`; the resource itself when there is none.
        types: What `typ` of a token may be, in lower case; anything when it is empty.
        algorithms: What it signs with.
        client_claim: Where its tokens say which client they were given to.
        id_claim: Where they say their own name.
        scope_claim: Where they say what they are for.
        private_network: Whether it may have an address of a private network.
        introspection: Asked about every token, so that revoked ones are known; None: tokens count until they expire.
        opaque: Whether tokens that are no JWTs are its.
    """

    url: str
    audience: tuple[str, ...] = ()
    types: tuple[str, ...] = ("at+jwt",)
    algorithms: tuple[str, ...] = ("ES256",)
    client_claim: str = "client_id"
    id_claim: str = "jti"
    scope_claim: str = "scope"
    private_network: bool = False
    introspection: Introspection | None = None
    opaque: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationSettings:
    """Whose tokens count, and for what.

    Attributes:
        resource: The URL at which clients reach this server: the audience of tokens. None: derived where it listens.
        issuers: Whose tokens count; none: nobody is asked for a token.
        skew: Seconds by which clocks may differ.
        revocation: Seconds within which a revoked token no longer counts, where its issuer can be asked.
        first_scopes: What a client without a token is told to ask for; it is told of more when it needs that.
        development: Whether this server makes its own key and token.
        secret_variables: Variables of the environment in which secrets of it are.
    """

    resource: str | None = None
    issuers: tuple[IssuerPolicy, ...] = ()
    skew: float = 30.0
    revocation: float = 30.0
    first_scopes: tuple[str, ...] = FIRST_SCOPES
    development: bool = False
    secret_variables: tuple[str, ...] = ()

    @property
    def wanted(self) -> bool:
        """Whether a request needs a token."""
        return bool(self.issuers) or self.development


def parse_identifier(text: str) -> str:
    """Read the URL that names an issuer or a resource: https, or http on the own machine; no query, no fragment.

    Raises:
        ValueError: It is none.
    """
    parts = urlsplit(text)
    host = parts.hostname or ""
    plain = parts.scheme == "http" and host in LOOPBACK_HOSTS
    if (
        not host
        or not (parts.scheme == "https" or plain)
        or "@" in parts.netloc
        or parts.netloc != parts.netloc.lower()
    ):
        raise ValueError(text)
    if parts.query or parts.fragment or "?" in text or "#" in text or not _URL_PATH.fullmatch(parts.path):
        raise ValueError(text)
    _ = parts.port  # Raises when it is none.
    return text


def is_loopback_url(url: str) -> bool:
    """Tell whether a URL leads to the own machine by its name."""
    return urlsplit(url).hostname in LOOPBACK_HOSTS
