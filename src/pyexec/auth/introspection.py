"""Asking an issuer whether a token still counts, and what it says (RFC 7662)."""

import hashlib
from dataclasses import replace
from typing import Any

from pyexec.auth import tokens
from pyexec.auth.issuers import PublishedIssuer
from pyexec.auth.refusals import InvalidTokenError
from pyexec.domain.authorization import IssuerPolicy
from pyexec.domain.identities import Identity


async def require_active(issuer: PublishedIssuer, token: str) -> dict[str, Any]:
    """Return what the issuer of a token says about it.

    Raises:
        InvalidTokenError: It no longer counts, or never did.
        IssuerUnavailableError: There is no answer.
    """
    said = await issuer.ask({"token": token, "token_type_hint": "access_token"})
    if said.get("active") is not True:
        raise InvalidTokenError("Its issuer says that it does not count.")
    return said


def identity_of(
    said: dict[str, Any], token: str, policy: IssuerPolicy, resource: str, now: float, skew: float
) -> Identity:
    """Check what the issuer of an opaque token says about it; return that.

    Raises:
        InvalidTokenError: Something is missing, wrong, or not true now.
    """
    if said.get("iss", policy.url) != policy.url:
        raise InvalidTokenError("It is from another issuer.")
    if str(said.get("token_type", "Bearer")).lower() != "bearer":
        raise InvalidTokenError("It is of another kind.")
    # Times and names of its own are optional here: without them it counts as long as its issuer says so.
    checked = {
        "exp": now + 1 if "exp" not in said else said["exp"],
        "iat": now,
        policy.id_claim: hashlib.sha256(token.encode()).hexdigest()[:32],
        **said,
        "iss": policy.url,
        "scope": said.get("scope", ""),
    }
    found = tokens.identity_of(checked, policy, resource, now, skew)
    return replace(
        found,
        expires_at=found.expires_at if "exp" in said else None,
        issued_at=found.issued_at if "iat" in said else None,
    )
