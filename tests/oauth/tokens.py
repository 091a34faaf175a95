"""An issuer in the tests' own hands: its keys sign whatever a test wants."""

import base64
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey

from pyexec.auth.keys import FixedKeys, KnownKey
from pyexec.auth.verification import Issuer, Verifier
from pyexec.domain.authorization import IssuerPolicy

RESOURCE = "https://mcp.example.com/mcp"
ISSUER = "https://id.example.com"
NOW = 1_800_000_000.0


def part(value: Any) -> str:
    """A part of a JWT; bytes go in as they are."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Clock:
    """Both clocks of a verifier."""

    at: float = NOW

    def __call__(self) -> float:
        return self.at


@dataclass
class Signing:
    """A key, and tokens of it."""

    issuer: str = ISSUER
    resource: str = RESOURCE
    key: ECKey = field(default_factory=lambda: ECKey.generate_key("P-256"))
    now: Any = time.time

    @property
    def known(self) -> KnownKey:
        return KnownKey(kid="k1", algorithm="ES256", key=self.key)

    def trusted(self, **policy: Any) -> Issuer:
        return Issuer(policy=IssuerPolicy(url=self.issuer, **policy), keys=FixedKeys([self.known]))

    def claims(self, **changes: Any) -> dict[str, Any]:
        """The claims of a good token; what is None is left out."""
        now = int(self.now())
        found = {
            "iss": self.issuer,
            "aud": self.resource,
            "sub": "ada",
            "client_id": "client",
            "scope": "python:execute jobs:read",
            "iat": now,
            "exp": now + 600,
            "jti": secrets.token_hex(8),
            **changes,
        }
        return {name: value for name, value in found.items() if value is not None}

    def header(self, **changes: Any) -> dict[str, Any]:
        found = {"typ": "at+jwt", "alg": "ES256", "kid": "k1", **changes}
        return {name: value for name, value in found.items() if value is not None}

    def token(self, header: dict[str, Any] | None = None, payload: bytes | None = None, **claims: Any) -> str:
        header = self.header() if header is None else header
        payload = json.dumps(self.claims(**claims)).encode() if payload is None else payload
        registry = jws.JWSRegistry(algorithms=["ES256"], strict_check_header=False)
        return jws.serialize_compact(header, payload, self.key, algorithms=["ES256"], registry=registry)


def verifier(*issuers: Issuer, clock: Clock | None = None, **more: Any) -> Verifier:
    clock = clock or Clock()
    return Verifier(issuers, RESOURCE, now=clock, clock=clock, **more)
