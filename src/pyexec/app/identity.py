"""How the service finds out who asks: the one place where authorization is put in."""

from collections.abc import Callable
from dataclasses import dataclass

from fastmcp.server.auth import AuthProvider
from fastmcp.server.middleware import Middleware
from mcp.server.auth.routes import build_resource_metadata_url
from pydantic import AnyHttpUrl
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse

from pyexec.app.authorization import Authorization
from pyexec.auth import scopes
from pyexec.domain.identities import Identity
from pyexec.domain.principals import Principal
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
        principal_of: Tells who has made a plain request; raises `NotKnownError` where nobody knows.
        reader_of: Does the same for one that reads jobs, which has to be allowed to.
    """

    provider: AuthProvider | None
    checks: tuple[Middleware, ...]
    principal: Callable[[], Principal]
    principal_of: Callable[[HTTPConnection], Principal]
    reader_of: Callable[[HTTPConnection], Principal]


def without_authorization() -> Identities:
    """Return what takes everybody for the same."""
    return Identities(
        provider=None,
        checks=(),
        principal=lambda: ANYONE,
        principal_of=lambda _request: ANYONE,
        reader_of=lambda _request: ANYONE,
    )


def with_authorization(authorization: Authorization) -> Identities:
    """Return what goes by tokens."""
    metadata = str(build_resource_metadata_url(AnyHttpUrl(authorization.resource)))

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

    return Identities(
        provider=authorization.auth,
        checks=authorization.checks,
        principal=authorization.principal,
        principal_of=lambda connection: known(connection).principal,
        reader_of=reader_of,
    )


def _refusal(status: int, code: str, message: str, metadata: str, scope: str | None = None) -> JSONResponse:
    asked = f'error="insufficient_scope", scope="{scope}", ' if scope else ""
    challenge = f'Bearer {asked}resource_metadata="{metadata}"'
    headers = {"WWW-Authenticate": challenge, "Cache-Control": "no-store"}
    return JSONResponse({"error": message, "error_code": code}, status, headers)
