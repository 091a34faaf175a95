"""What a JWT must be like to count as an access token (RFC 9068), whatever its signature."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any, cast

from joserfc import jws
from joserfc.errors import JoseError

from pyexec.auth.keys import KnownKey
from pyexec.auth.refusals import InvalidTokenError
from pyexec.auth.strict_json import strict_object
from pyexec.domain.authorization import IssuerPolicy
from pyexec.domain.identities import Identity

LARGEST = 8192
"""Characters of a token; longer ones do not fit into what servers take as headers either."""

LONGEST_NAME = 400
"""Characters of issuer and subject together: they own records."""

_JWT_DOTS = 2
# Each tells whose key to use or how to read the token; we know both.
_REFUSED_HEADERS = frozenset({"b64", "crit", "enc", "jku", "jwk", "x5c", "x5u", "zip"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unverified:
    """A JWT that was read and not believed yet."""

    header: dict[str, Any]
    claims: dict[str, Any]


def is_jwt(token: str) -> bool:
    """Tell whether a token looks like a JWT; else only its issuer knows what it says."""
    return token.count(".") == _JWT_DOTS


def read(token: str) -> Unverified:
    """Read a JWT.

    Raises:
        InvalidTokenError: It is none.
    """
    header, claims, _signature = token.split(".")
    try:
        return Unverified(header=strict_object(_decoded(header)), claims=strict_object(_decoded(claims)))
    except ValueError:
        raise InvalidTokenError("It is no JWT.") from None


def algorithm_of(header: dict[str, Any], policy: IssuerPolicy) -> str:
    """Check the header; return what the token is signed with.

    Raises:
        InvalidTokenError: It is not as the policy says.
    """
    if _REFUSED_HEADERS & header.keys():
        raise InvalidTokenError("Its header says how to check it.")
    algorithm = header.get("alg")
    if algorithm not in policy.algorithms:
        raise InvalidTokenError("It is signed in another way than its issuer signs.")
    if policy.types:
        kind = header.get("typ")
        if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in policy.types:
            raise InvalidTokenError("It is no access token by its type.")
    return cast("str", algorithm)


def key_name(header: dict[str, Any]) -> str | None:
    """Return the name of the key that a token was signed with.

    Raises:
        InvalidTokenError: It is no name.
    """
    kid = header.get("kid")
    if kid is not None and not isinstance(kid, str):
        raise InvalidTokenError("Its key has no name.")
    return kid


def check_signature(token: str, key: KnownKey, algorithm: str) -> None:
    """Check that a key has signed a token.

    Raises:
        InvalidTokenError: It has not.
    """
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    try:
        jws.deserialize_compact(token, key.key, algorithms=[algorithm], registry=registry)
    except (JoseError, ValueError):
        raise InvalidTokenError("Its signature is wrong.") from None


def identity_of(claims: dict[str, Any], policy: IssuerPolicy, resource: str, now: float, skew: float) -> Identity:
    """Check the claims of a JWT; return what it says.

    Raises:
        InvalidTokenError: A claim is missing, wrong, or not true now.
    """
    if claims.get("iss") != policy.url:
        raise InvalidTokenError("It is from another issuer.")
    expires_at, issued_at = _time(claims, "exp"), _time(claims, "iat")
    if expires_at + skew <= now:
        raise InvalidTokenError("It has expired.")
    if issued_at - skew > now:
        raise InvalidTokenError("It was issued in the future.")
    if "nbf" in claims and _time(claims, "nbf") - skew > now:
        raise InvalidTokenError("It does not count yet.")
    check_audience(claims, policy, resource)
    return Identity(
        issuer=policy.url,
        subject=subject_of(claims, policy),
        client_id=name_of(claims, policy.client_claim),
        scopes=scopes_of(claims, policy),
        token_id=name_of(claims, policy.id_claim),
        expires_at=expires_at,
        issued_at=issued_at,
    )


def check_audience(claims: dict[str, Any], policy: IssuerPolicy, resource: str) -> None:
    """Check that a token is for us.

    Raises:
        InvalidTokenError: It is for somebody else, or for nobody.
    """
    audience = claims.get("aud")
    named = cast("list[Any]", audience) if isinstance(audience, list) else [audience]
    if not set(policy.audience or (resource,)) & {one for one in named if isinstance(one, str)}:
        raise InvalidTokenError("It is for another audience.")


def subject_of(claims: dict[str, Any], policy: IssuerPolicy) -> str:
    """Return whom a token stands for.

    Raises:
        InvalidTokenError: It does not say, or at too great length.
    """
    subject = name_of(claims, "sub")
    if len(subject) + len(policy.url) > LONGEST_NAME:
        raise InvalidTokenError("The name of its subject is too long.")
    return subject


def name_of(claims: dict[str, Any], claim: str) -> str:
    """Return a claim that is a name.

    Raises:
        InvalidTokenError: It is missing or none.
    """
    value = claims.get(claim)
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > LONGEST_NAME:
        raise InvalidTokenError(f"It has no {claim}.")
    return value


def scopes_of(claims: dict[str, Any], policy: IssuerPolicy) -> frozenset[str]:
    """Return what a token is for: words with spaces between them, or a list of words.

    Raises:
        InvalidTokenError: It is neither.
    """
    scope = claims.get(policy.scope_claim, "")
    if isinstance(scope, str):
        return frozenset(scope.split())
    words = cast("list[Any]", scope) if isinstance(scope, list) else [None]
    if not all(isinstance(word, str) for word in words):
        raise InvalidTokenError("Its scopes cannot be read.")
    return frozenset(word for word in words if word)


def _time(claims: dict[str, Any], claim: str) -> float:
    value = claims.get(claim)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise InvalidTokenError(f"It has no {claim}.")
    return float(value)


def _decoded(part: str) -> bytes:
    if "=" in part:
        raise ValueError("padded")
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("no base64") from error
