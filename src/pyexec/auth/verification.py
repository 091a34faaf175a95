"""Whether a token counts, and who it says is asking."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

from pyexec.auth import introspection, tokens
from pyexec.auth.issuers import PublishedIssuer
from pyexec.auth.keys import Keys
from pyexec.auth.refusals import InvalidTokenError
from pyexec.domain.authorization import IssuerPolicy
from pyexec.domain.identities import Identity
from pyexec.domain.principals import Principal

Kept = TypeVar("Kept")

Ended = Callable[[Principal], Awaitable[float | None]]
"""Tells when somebody was ended by the operator of this server, in seconds since the epoch; None: was not."""

REMEMBERED = 4096
"""Tokens whose answer is kept, each way."""

REMEMBERED_SECONDS = 60.0
REFUSED_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """An issuer whose tokens count: what they must be like, its keys, and the one to ask about them."""

    policy: IssuerPolicy
    keys: Keys
    asked: PublishedIssuer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    identity: Identity
    issuer: Issuer
    generation: int
    until: float


@dataclass(slots=True)
class _Turn:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    users: int = 0


class _Memory(Generic[Kept]):
    """What was found lately, by digest of the token; what was used least lately goes first."""

    def __init__(self) -> None:
        self._found: OrderedDict[bytes, Kept] = OrderedDict()

    def get(self, digest: bytes) -> Kept | None:
        found = self._found.get(digest)
        if found is not None:
            self._found.move_to_end(digest)
        return found

    def put(self, digest: bytes, found: Kept) -> None:
        self._found[digest] = found
        self._found.move_to_end(digest)
        if len(self._found) > REMEMBERED:
            self._found.popitem(last=False)

    def forget(self, digest: bytes) -> None:
        self._found.pop(digest, None)


class Verifier:
    """Verifies tokens. Keeps digests of them and never a token."""

    def __init__(
        self,
        issuers: Sequence[Issuer],
        resource: str,
        *,
        skew: float = 30.0,
        revocation: float = 30.0,
        ended: Ended | None = None,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuers = {one.policy.url: one for one in issuers}
        self._opaque = next((one for one in issuers if one.policy.opaque), None)
        self._resource = resource
        self._skew = skew
        self._revocation = revocation
        self._ended = ended
        self._now = now
        self._clock = clock
        self._verified = _Memory[_Verified]()
        self._refused = _Memory[tuple[str, float]]()
        self._turns: dict[bytes, _Turn] = {}

    @property
    def recheck_seconds(self) -> float:
        """How often a token has to be looked at again while something goes on in its name."""
        return min(self._revocation or REMEMBERED_SECONDS, REMEMBERED_SECONDS)

    async def verify(self, token: str) -> Identity:
        """Return what a token says.

        Raises:
            InvalidTokenError: It does not count.
            IssuerUnavailableError: That cannot be said now.
        """
        if len(token) > tokens.LARGEST:
            raise InvalidTokenError("It is too long.")
        if not token.isascii() or not token.isprintable() or " " in token or not token:
            raise InvalidTokenError("It has characters that no token has.")
        digest = hashlib.sha256(token.encode()).digest()
        known = self._remembered(digest)
        if known is None:
            async with self._turn(digest):
                known = self._remembered(digest) or await self._verify_anew(token, digest)
        await self._see_that_it_was_not_ended(known)
        return known

    def has_expired(self, identity: Identity) -> bool:
        """Tell whether a token is past its end, rather than revoked before."""
        return identity.expires_at is not None and identity.expires_at + self._skew <= self._now()

    async def _see_that_it_was_not_ended(self, identity: Identity) -> None:
        if self._ended is None:
            return
        ended_at = await self._ended(identity.principal)
        # One that does not say when it was made counts as long as its issuer, who is asked about it, says so.
        if ended_at is None or identity.issued_at is None:
            return
        # Where the issuer's clock is ahead of ours, one from before the end says that it was made after it.
        newer = ended_at + self._skew
        if identity.issued_at <= newer:
            raise InvalidTokenError(
                "Its user was ended by the operator of this server; one that is issued after "
                f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(newer))} UTC may count."
            )

    async def _verify_anew(self, token: str, digest: bytes) -> Identity:
        began = self._clock()
        try:
            verified = await (self._verify_jwt(token, began) if tokens.is_jwt(token) else self._ask(token, began))
        except InvalidTokenError as error:
            self._verified.forget(digest)
            self._refused.put(digest, (error.reason, began + REFUSED_SECONDS))
            raise
        self._verified.put(digest, verified)
        return verified.identity

    async def _verify_jwt(self, token: str, began: float) -> _Verified:
        unverified = tokens.read(token)
        issuer = self._issuers.get(str(unverified.claims.get("iss")))
        if issuer is None:
            raise InvalidTokenError("It is from an issuer whose tokens do not count here.")
        policy = issuer.policy
        algorithm = tokens.algorithm_of(unverified.header, policy)
        kid = tokens.key_name(unverified.header)
        # What is plainly wrong is refused before anybody is asked for keys.
        identity = tokens.identity_of(unverified.claims, policy, self._resource, self._now(), self._skew)
        await issuer.keys.refresh()
        key = await issuer.keys.find(kid, algorithm)
        generation = issuer.keys.generation
        tokens.check_signature(token, key, algorithm)
        if policy.introspection is not None and issuer.asked is not None:
            await introspection.require_active(issuer.asked, token)
            return _Verified(identity=identity, issuer=issuer, generation=generation, until=began + self._revocation)
        return _Verified(identity=identity, issuer=issuer, generation=generation, until=began + REMEMBERED_SECONDS)

    async def _ask(self, token: str, began: float) -> _Verified:
        issuer = self._opaque
        if issuer is None or issuer.asked is None:
            raise InvalidTokenError("It is no JWT, and nobody is asked about others.")
        said = await introspection.require_active(issuer.asked, token)
        identity = introspection.identity_of(said, token, issuer.policy, self._resource, self._now(), self._skew)
        return _Verified(
            identity=identity, issuer=issuer, generation=issuer.keys.generation, until=began + self._revocation
        )

    def _remembered(self, digest: bytes) -> Identity | None:
        refused = self._refused.get(digest)
        if refused is not None and self._clock() < refused[1]:
            raise InvalidTokenError(refused[0])
        known = self._verified.get(digest)
        if known is None or self._clock() >= known.until or known.generation != known.issuer.keys.generation:
            return None
        if self.has_expired(known.identity):
            raise InvalidTokenError("It has expired.")
        return known.identity

    @asynccontextmanager
    async def _turn(self, digest: bytes) -> AsyncGenerator[None]:
        """One at a time for each token: calls that come together ask its issuer once."""
        turn = self._turns.setdefault(digest, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                self._turns.pop(digest, None)
