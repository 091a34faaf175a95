"""Signing tokens, and reading our own again."""

from collections.abc import Mapping
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from pyexec_idp.domain.errors import WrongTokenError
from pyexec_idp.domain.secrets import Clock, wall_clock
from pyexec_idp.keys.ring import ALGORITHM, KeyRing

ACCESS_TOKEN = "at+jwt"  # noqa: S105
ID_TOKEN = "JWT"  # noqa: S105


class Signer:
    """Makes tokens of one issuer, and checks whether a token is one of them."""

    def __init__(self, ring: KeyRing, issuer: str, now: Clock = wall_clock) -> None:
        self._ring = ring
        self._issuer = issuer
        self._now = now

    def sign(self, kind: str, claims: Mapping[str, Any]) -> str:
        """Return a token with these claims and the issuer's name.

        Raises:
            KeysUnusableError: There is no key to sign with.
        """
        key = self._ring.signing()
        header = {"typ": kind, "alg": ALGORITHM, "kid": key.thumbprint()}
        return jwt.encode(header, {"iss": self._issuer, **claims}, key, algorithms=[ALGORITHM])

    def key(self) -> ECKey:
        """Return the private key to sign with now."""
        return self._ring.signing()

    def read(self, token: str, kind: str, *, may_be_expired: bool = False) -> dict[str, Any]:
        """Return the claims of a token of ours.

        Raises:
            WrongTokenError: It is none of that kind, or has expired.
        """
        keys = KeySet([one.key for one in self._ring.all() if one.is_published(self._now())])
        try:
            found = jwt.decode(token, keys, algorithms=[ALGORITHM])
        except (JoseError, ValueError) as error:
            raise WrongTokenError("The token is none of ours.") from error
        claims = found.claims
        expires_at = claims.get("exp")
        expired = not isinstance(expires_at, (int, float)) or (expires_at <= self._now() and not may_be_expired)
        if found.header.get("typ", "JWT") != kind or claims.get("iss") != self._issuer or expired:
            raise WrongTokenError("The token is none of that kind, or has expired.")
        return claims
