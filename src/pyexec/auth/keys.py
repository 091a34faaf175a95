"""Public keys of issuers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey, import_key

from pyexec.auth.refusals import InvalidTokenError

PublicKey = ECKey | OKPKey | RSAKey

MOST_KEYS = 64
_SMALLEST_RSA_BITS = 2048
_FAMILIES = {"ES": "EC", "PS": "RSA", "RS": "RSA", "Ed": "OKP"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKey:
    """A public key with the name its issuer gave it."""

    kid: str | None
    algorithm: str | None
    key: PublicKey

    def fits(self, algorithm: str) -> bool:
        """Tell whether a signature of that kind may be this key's."""
        named = self.algorithm is None or self.algorithm == algorithm
        return named and self.key.key_type == _FAMILIES[algorithm[:2]]


class Keys(Protocol):
    """The keys of one issuer."""

    @property
    def generation(self) -> int:
        """Counts up when they change."""
        ...

    async def find(self, kid: str | None, algorithm: str) -> KnownKey:
        """Return the key that a token names.

        Raises:
            InvalidTokenError: There is none.
            IssuerUnavailableError: They cannot be had.
        """
        ...

    async def refresh(self) -> None:
        """Have them anew when they are old."""
        ...


def read_keys(document: dict[str, Any]) -> tuple[KnownKey, ...]:
    """Read the signing keys of a key set (RFC 7517); what is none of use is passed over.

    Raises:
        ValueError: It is no key set, or too large a one.
    """
    found = document.get("keys")
    entries = cast("list[Any]", found) if isinstance(found, list) else []
    if not 0 < len(entries) <= MOST_KEYS:
        raise ValueError("no keys, or too many")
    return tuple(known for entry in entries if (known := _read_key(entry)) is not None)


def pick(keys: Sequence[KnownKey], kid: str | None, algorithm: str) -> KnownKey | None:
    """Return the one key that a token names, or, when it names none, the only one that fits."""
    fitting = [one for one in keys if one.fits(algorithm) and (kid is None or one.kid == kid)]
    return fitting[0] if len(fitting) == 1 else None


class FixedKeys:
    """Keys that are known from the start."""

    def __init__(self, keys: Sequence[KnownKey]) -> None:
        self._keys = tuple(keys)

    @property
    def generation(self) -> int:
        """They never change."""
        return 0

    async def find(self, kid: str | None, algorithm: str) -> KnownKey:
        """Return the key that a token names."""
        found = pick(self._keys, kid, algorithm)
        if found is None:
            raise InvalidTokenError("It names a key that its issuer does not have.")
        return found

    async def refresh(self) -> None:
        """Do nothing."""


def _read_key(entry: Any) -> KnownKey | None:
    if not isinstance(entry, dict):
        return None
    values = cast("dict[str, Any]", entry)
    kid, algorithm, use = values.get("kid"), values.get("alg"), values.get("use", "sig")
    if values.get("kty") not in _FAMILIES.values() or use != "sig" or "d" in values:
        return None
    try:
        key = import_key({name: values[name] for name in ("kty", "crv", "x", "y", "n", "e") if name in values})
    except (JoseError, ValueError, TypeError):
        return None
    if not isinstance(key, PublicKey) or (isinstance(key, RSAKey) and key.public_key.key_size < _SMALLEST_RSA_BITS):
        return None
    return KnownKey(
        kid=kid if isinstance(kid, str) else None, algorithm=algorithm if isinstance(algorithm, str) else None, key=key
    )
