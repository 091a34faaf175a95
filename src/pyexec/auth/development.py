"""A key and a token made on the spot, to try a server out on one's own machine."""

import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass

from joserfc import jwt
from joserfc.jwk import ECKey

from pyexec.auth.keys import FixedKeys, KnownKey
from pyexec.auth.scopes import SCOPES
from pyexec.auth.verification import Issuer
from pyexec.domain.authorization import IssuerPolicy

NAME = "pyexec:development"
"""As which the key signs; no URL, so that no real issuer can be called so."""

SUBJECT = "developer"
CLIENT = "pyexec-development"
SECONDS = 12 * 3600.0
_ALGORITHM = "ES256"


@dataclass(frozen=True, slots=True)
class DevelopmentKey:
    """Signs tokens that count as long as this process lives. Nobody outside it has the key."""

    key: ECKey

    @classmethod
    def make(cls) -> "DevelopmentKey":
        """Make a key."""
        return cls(ECKey.generate_key("P-256"))

    @property
    def issuer(self) -> Issuer:
        """The issuer that this key is."""
        public = KnownKey(kid=self.key.thumbprint(), algorithm=_ALGORITHM, key=self.key)
        return Issuer(policy=IssuerPolicy(url=NAME), keys=FixedKeys((public,)))

    def token(
        self,
        resource: str,
        *,
        subject: str = SUBJECT,
        scopes: Collection[str] = tuple(SCOPES),
        seconds: float = SECONDS,
        client: str = CLIENT,
    ) -> str:
        """Return a token for a resource."""
        now = int(time.time())
        claims = {
            "iss": NAME,
            "aud": resource,
            "sub": subject,
            "client_id": client,
            "scope": " ".join(scopes),
            "iat": now,
            "exp": now + int(seconds),
            "jti": secrets.token_urlsafe(16),
        }
        header = {"typ": "at+jwt", "alg": _ALGORITHM, "kid": self.key.thumbprint()}
        return jwt.encode(header, claims, self.key, algorithms=[_ALGORITHM])
