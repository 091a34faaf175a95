"""How the service finds out who asks: the one place where authorization is put in."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from fastmcp.server.auth import AuthProvider
from fastmcp.server.dependencies import get_http_request
from fastmcp.server.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse

from pyexec.app.authorization import Authorization
from pyexec.auth import scopes
from pyexec.domain.identities import Identity
from pyexec.domain.principals import Principal
from pyexec.http.addresses import address_of, place_of
from pyexec.http.identity import NotKnownError
from pyexec.mcp.authorization.callers import identity_of

ANYONE = Principal(issuer="anyone", subject="")
"""Who asks where nobody has to say who they are; not the OS user, whose jobs and scripts are not everybody's."""

READS_JOBS = "jobs:read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """Who asks, over MCP and over plain routes.

    Attributes:
        provider: Verifies tokens; None: nobody has to say who they are.
        checks: What looks at every MCP message besides.
        principal: Tells who has made the MCP request that is under way.
        reader_of: Tells who has made a plain request that reads jobs; raises `NotKnownError` where nobody knows, or
            they may not.
        counted_as: Tells whose requests one counts among: those of its user, else those from where it came.
    """

    provider: AuthProvider | None
    checks: tuple[Middleware, ...]
    principal: Callable[[], Principal]
    reader_of: Callable[[HTTPConnection], Principal]
    counted_as: Callable[[HTTPConnection], str]


def without_authorization() -> Identities:
    """Return what takes everybody for the same."""
    return Identities(
        provider=None,
        checks=(),
        principal=lambda: replace(ANYONE, address=address_of(get_http_request())),
        reader_of=lambda _request: ANYONE,
        counted_as=_by_place,
    )


def with_authorization(authorization: Authorization) -> Identities:
    """Return what goes by tokens."""
    metadata = authorization.metadata_url

    def known(connection: HTTPConnection) -> Identity:
        identity = identity_of(connection)
        if identity is None:
            raise NotKnownError(_refusal(401, "unauthorized", "A token that counts is needed.", metadata))
        return identity

    def reader_of(connection: HTTPConnection) -> Principal:
        identity = known(connection)
        if not scopes.holds(identity.scopes, READS_JOBS):
            told = f"It needs the scope {READS_JOBS}."
            raise NotKnownError(_refusal(403, "insufficient_scope", told, metadata, READS_JOBS))
        return identity.principal

    def counted_as(connection: HTTPConnection) -> str:
        identity = identity_of(connection)
        return _by_place(connection) if identity is None else identity.principal.key

    return Identities(
        provider=authorization.auth,
        checks=authorization.checks,
        principal=authorization.principal,
        reader_of=reader_of,
        counted_as=counted_as,
    )


def _by_place(connection: HTTPConnection) -> str:
    return f"from {place_of(connection)}"


def _refusal(status: int, code: str, message: str, metadata: str | None, scope: str | None = None) -> JSONResponse:
    parts = ['error="insufficient_scope"', f'scope="{scope}"'] if scope else []
    if metadata is not None:
        parts.append(f'resource_metadata="{metadata}"')
    challenge = f"Bearer {', '.join(parts)}".strip()
    headers = {"WWW-Authenticate": challenge, "Cache-Control": "no-store"}
    return JSONResponse({"error": message, "error_code": code}, status, headers)
