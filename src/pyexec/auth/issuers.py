"""What an issuer publishes: its metadata (RFC 8414, or OpenID Connect discovery), and its keys."""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import anyio

from pyexec.auth.fetching import Fetcher, reach_of
from pyexec.auth.keys import KnownKey, pick, read_keys
from pyexec.auth.refusals import InvalidTokenError, IssuerUnavailableError
from pyexec.domain.authorization import IssuerPolicy

_log = logging.getLogger(__name__)

KEYS_SECONDS = 300.0
METADATA_SECONDS = 3600.0
STALE_SECONDS = 3600.0
"""How long keys count when their issuer cannot be asked for new ones."""
AGAIN_SECONDS = 10.0
"""A key that nobody knows makes us ask once in this time."""
FAILED_SECONDS = 5.0


def metadata_urls(issuer: str) -> tuple[str, ...]:
    """Return where the metadata of an issuer may lie, in the order in which they are looked for."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = tuple(
        f"{origin}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")
    )
    return (*inserted, f"{origin}{path}/.well-known/openid-configuration") if path else inserted


class _Kept:
    """Something fetched, kept for a while, and fetched by one at a time."""

    def __init__(self, seconds: float, stale_seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._stale_seconds = stale_seconds
        self._clock = clock
        self._lock = anyio.Lock()
        self._failed_at = float("-inf")
        self._reason = ""
        self.value: Any = None
        self.at = float("-inf")

    async def get(self, fetch: Callable[[], Awaitable[Any]], *, older_than: float | None = None) -> Any:
        """Return it; fetch it when it is older than usual, or than that many seconds."""
        limit = self._seconds if older_than is None else older_than
        if self._clock() - self.at <= limit:
            return self.value
        async with self._lock:
            if self._clock() - self.at <= limit:
                return self.value
            if self._clock() - self._failed_at > FAILED_SECONDS:
                try:
                    # The time before: what changes while it is under way counts as not seen.
                    began, self.value = self._clock(), await fetch()
                except IssuerUnavailableError as error:
                    self._failed_at, self._reason = self._clock(), error.reason
                    _log.warning("%s", error.reason)
                else:
                    self.at = began
                    return self.value
        if self._clock() - self.at <= self._stale_seconds:
            return self.value
        raise IssuerUnavailableError(self._reason)


class PublishedIssuer:
    """An issuer that is asked over the network; see `Keys`."""

    def __init__(self, policy: IssuerPolicy, fetcher: Fetcher, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._fetcher = fetcher
        self._reach = reach_of(policy.url, private=policy.private_network)
        self._metadata = _Kept(METADATA_SECONDS, STALE_SECONDS * 24, clock)
        self._keys = _Kept(KEYS_SECONDS, STALE_SECONDS, clock)
        self._generation = 0
        self._seen: tuple[KnownKey, ...] = ()

    @property
    def generation(self) -> int:
        """Counts up when keys come or go."""
        return self._generation

    async def find(self, kid: str | None, algorithm: str) -> KnownKey:
        """Return the key that a token names; one that is not known may be new, so it is looked for once in a while."""
        found = pick(await self._current(), kid, algorithm)
        if found is None and kid is not None:
            found = pick(await self._current(older_than=AGAIN_SECONDS), kid, algorithm)
        if found is None:
            raise InvalidTokenError("It names a key that its issuer does not have.")
        return found

    async def refresh(self) -> None:
        """Have the keys anew when they are old."""
        await self._current()

    async def _introspection_endpoint(self) -> str:
        endpoint = (await self._about()).get("introspection_endpoint")
        if not isinstance(endpoint, str):
            raise IssuerUnavailableError(f"{self._policy.url} does not say where to ask about tokens.")
        return endpoint

    async def ask(self, form: dict[str, str]) -> dict[str, Any]:
        """Ask about a token (RFC 7662).

        Raises:
            IssuerUnavailableError: There is no answer.
        """
        asked = self._policy.introspection
        if asked is None:
            raise IssuerUnavailableError(f"Nobody says as whom to ask {self._policy.url} about tokens.")
        endpoint = asked.endpoint or await self._introspection_endpoint()
        return await self._fetcher.post(endpoint, self._reach, form, (asked.client_id, asked.client_secret))

    async def _current(self, older_than: float | None = None) -> tuple[KnownKey, ...]:
        return await self._keys.get(self._fetch_keys, older_than=older_than)

    async def _about(self) -> dict[str, Any]:
        return await self._metadata.get(self._fetch_metadata)

    async def _fetch_metadata(self) -> dict[str, Any]:
        reasons: list[str] = []
        for url in metadata_urls(self._policy.url):
            try:
                document = await self._fetcher.get(url, self._reach)
            except IssuerUnavailableError as error:
                reasons.append(error.reason)
                continue
            if document.get("issuer") != self._policy.url:
                # RFC 8414, section 3.3: it must not be used.
                said = str(document.get("issuer"))[:200]
                raise IssuerUnavailableError(f"{url} is about the issuer {said}, not {self._policy.url}.")
            return document
        raise IssuerUnavailableError(" ".join(reasons))

    async def _fetch_keys(self) -> tuple[KnownKey, ...]:
        url = (await self._about()).get("jwks_uri")
        if not isinstance(url, str):
            raise IssuerUnavailableError(f"{self._policy.url} does not say where its keys are.")
        try:
            found = read_keys(await self._fetcher.get(url, self._reach))
        except ValueError:
            raise IssuerUnavailableError(f"{url} holds no keys.") from None
        if _names(found) != _names(self._seen):
            self._seen = found
            self._generation += 1
        return self._seen


def _names(keys: tuple[KnownKey, ...]) -> list[tuple[str | None, str]]:
    return [(one.kid, one.key.thumbprint()) for one in keys]
