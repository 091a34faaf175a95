"""The tokens themselves: access tokens as JWTs (RFC 9068), refresh tokens as secrets."""

from typing import Any

from pyexec_idp.domain.errors import WrongTokenError
from pyexec_idp.domain.secrets import Clock, new_id, wall_clock
from pyexec_idp.domain.values import Grant, Lifetimes
from pyexec_idp.keys.signing import ACCESS_TOKEN, Signer
from pyexec_idp.stores.grants import GrantStore

_NO_GRANT = "machine"


class Mint:
    """Makes access tokens, and tells whether one still holds."""

    def __init__(self, signer: Signer, store: GrantStore, lifetimes: Lifetimes, now: Clock = wall_clock) -> None:
        self._signer = signer
        self._store = store
        self._lifetimes = lifetimes
        self._now = now

    def for_grant(self, grant: Grant, scopes: tuple[str, ...]) -> str:
        """Return an access token of what somebody allowed."""
        claims = {"sub": grant.user_id, "auth_time": int(grant.auth_time)}
        return self._sign(grant.id, grant.client_id, scopes, grant.resource, claims)

    def for_client(self, client_id: str, scopes: tuple[str, ...], resource: str) -> str:
        """Return an access token of a client for itself."""
        return self._sign(_NO_GRANT, client_id, scopes, resource, {"sub": client_id})

    def check(self, token: str) -> dict[str, Any]:
        """Return the claims of an access token that holds: signed by us, not expired, not revoked.

        Raises:
            WrongTokenError: It does not.
        """
        claims = self._signer.read(token, ACCESS_TOKEN)
        jti = str(claims.get("jti", ""))
        grant_id = grant_of(jti)
        grant = None if grant_id is None else self._store.get(grant_id)
        gone = grant_id is not None and (grant is None or grant.revoked_at is not None)
        if gone or self._store.is_token_revoked(jti):
            raise WrongTokenError("The token was revoked.")
        return claims

    def _sign(self, origin: str, client_id: str, scopes: tuple[str, ...], resource: str, claims: dict[str, Any]) -> str:
        now = int(self._now())
        return self._signer.sign(
            ACCESS_TOKEN,
            {
                "aud": resource,
                "iat": now,
                "exp": now + int(self._lifetimes.access_token),
                "jti": f"{origin}.{new_id()}",
                "client_id": client_id,
                "scope": " ".join(scopes),
                **claims,
            },
        )


def grant_of(jti: str) -> str | None:
    """Return the grant that a token came from, None where a client got it for itself."""
    origin = jti.partition(".")[0]
    return None if origin == _NO_GRANT else origin
