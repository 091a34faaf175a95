"""Whose tokens count at a server over HTTP: the settings, put together. Loaded by such servers only."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from anyio.to_thread import run_sync
from fastmcp.server.auth import AuthProvider
from fastmcp.server.auth.ssrf import is_ip_allowed
from fastmcp.server.middleware import Middleware

from pyexec.auth.development import NAME, DevelopmentKey
from pyexec.auth.fetching import Fetcher
from pyexec.auth.issuers import PublishedIssuer
from pyexec.auth.verification import Issuer, Verifier
from pyexec.domain.authorization import AuthorizationSettings, IssuerPolicy, is_loopback_url
from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.principals import Principal
from pyexec.mcp.authorization.callers import current_principal
from pyexec.mcp.authorization.checks import ScopeChecks
from pyexec.mcp.authorization.guard import BODY_LIMIT
from pyexec.mcp.authorization.provider import ResourceServer
from pyexec.storage.ended_users import EndedUsers

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """What `build_server` needs of it, what else wants to verify tokens, and a token where we make one."""

    verifier: Verifier
    auth: AuthProvider
    checks: tuple[Middleware, ...]
    principal: Callable[[], Principal]
    resource: str
    metadata_url: str | None = None
    development_key: DevelopmentKey | None = None

    @property
    def development_token(self) -> str | None:
        """A token to try the server out with, in development mode."""
        return self.development_key.token(self.resource) if self.development_key else None


def open_authorization(
    settings: AuthorizationSettings,
    listening_at: str,
    *,
    body_limit: int = BODY_LIMIT,
    ended: EndedUsers | None = None,
) -> Authorization | None:
    """Return whose tokens count; None where nobody is asked for one. Asks nobody for anything yet.

    Args:
        settings: What the operator decided.
        listening_at: The URL of the MCP endpoint as it is without a proxy, such as `http://127.0.0.1:8765/mcp`.
        body_limit: How many bytes a request may have.
        ended: Whose tokens count no more, whatever their issuer says.

    Raises:
        InvalidArgumentError: Development mode, and reachable for others.
    """
    if not settings.wanted:
        return None
    resource = settings.resource or listening_at
    fetcher = Fetcher(is_ip_allowed)
    issuers = [_issuer(policy, fetcher) for policy in settings.issuers]
    key = _development_key(settings, listening_at, resource)
    verifier = Verifier(
        [*issuers, *([key.issuer] if key else [])],
        resource,
        skew=settings.skew,
        revocation=settings.revocation,
        ended=None if ended is None else partial(_ended_at, ended),
    )
    for issuer in issuers:
        if issuer.policy.introspection is None:
            _log.warning(
                "%s is not asked about tokens: one that was revoked counts until it expires.", issuer.policy.url
            )
    auth = ResourceServer(
        verifier,
        resource,
        [one.policy.url for one in issuers],
        first_scopes=settings.first_scopes,
        body_limit=body_limit,
    )
    return Authorization(
        verifier=verifier,
        auth=auth,
        checks=(ScopeChecks(),),
        principal=current_principal,
        resource=resource,
        metadata_url=auth.metadata_url,
        development_key=key,
    )


async def _ended_at(ended: EndedUsers, principal: Principal) -> float | None:
    if ended.is_stale:
        await run_sync(ended.look)
    return ended.ended_at(principal)


def _issuer(policy: IssuerPolicy, fetcher: Fetcher) -> Issuer:
    published = PublishedIssuer(policy, fetcher)
    return Issuer(policy=policy, keys=published, asked=published if policy.introspection else None)


def _development_key(settings: AuthorizationSettings, listening_at: str, resource: str) -> DevelopmentKey | None:
    if not settings.development:
        return None
    if not (is_loopback_url(listening_at) and is_loopback_url(resource)):
        raise InvalidArgumentError(
            f"A token of {NAME} is for the own machine only, and others can reach {resource}.",
            hint="Listen on 127.0.0.1, or set PYEXEC_AUTH_ISSUERS in place of PYEXEC_AUTH_DEVELOPMENT.",
        )
    return DevelopmentKey.make()
