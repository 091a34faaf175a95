"""This server as FastMCP knows it: a resource server that trusts some issuers (RFC 9728)."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from fastmcp.server.auth import AccessToken, RemoteAuthProvider, TokenVerifier
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.routes import build_resource_metadata_url, cors_middleware
from pydantic import AnyHttpUrl
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from pyexec.auth.refusals import InvalidTokenError
from pyexec.auth.scopes import OFFERED
from pyexec.auth.verification import Verifier
from pyexec.mcp.authorization.callers import Caller
from pyexec.mcp.authorization.guard import Guard

NAME = "pyexec"
METADATA_SECONDS = 300


class OurTokenVerifier(TokenVerifier):
    """Our verifier in FastMCP's form."""

    def __init__(self, verifier: Verifier) -> None:
        super().__init__()
        self.verifier = verifier

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what FastMCP has to know of a token, None when it does not count."""
        try:
            return Caller(await self.verifier.verify(token)).access_token  # pyright: ignore[reportReturnType]
        except InvalidTokenError:
            return None


class ResourceServer(RemoteAuthProvider):
    """Publishes whose tokens count and what for, and has a guard at the door.

    The library's own form is mended in these points: the resource is the configured URL, letter by letter, whatever
    path we listen at; issuers are named letter by letter too (clients compare); scopes are judged by tool; the token
    itself stays at the door.
    """

    def __init__(
        self, verifier: Verifier, resource: str, issuers: Sequence[str], *, first_scopes: Sequence[str], body_limit: int
    ) -> None:
        parts = urlsplit(resource)
        super().__init__(
            token_verifier=OurTokenVerifier(verifier),
            authorization_servers=[AnyHttpUrl(one) for one in issuers],
            base_url=f"{parts.scheme}://{parts.netloc}",
            scopes_supported=list(OFFERED),
            resource_name=NAME,
            challenge_scopes=list(first_scopes),
        )
        self._verifier = verifier
        self._resource = resource
        self._issuers = tuple(issuers)
        self._body_limit = body_limit

    def _get_resource_url(self, path: str | None = None) -> AnyHttpUrl | None:
        """Return the configured URL: a proxy may show us at another path than the one we listen at."""
        del path
        return AnyHttpUrl(self._resource)

    @property
    def metadata_url(self) -> str | None:
        """Where clients read whose tokens count; None when they can ask nobody for one."""
        return str(build_resource_metadata_url(AnyHttpUrl(self._resource))) if self._issuers else None

    def get_routes(self, mcp_path: str | None = None) -> list[Route]:
        """Return the routes of the metadata: with the path of the resource, and without for who looks there."""
        self.set_mcp_path(mcp_path)
        if self.metadata_url is None:
            return []
        path = urlsplit(self.metadata_url).path
        root = "/.well-known/oauth-protected-resource"
        handler = cors_middleware(self._answer_metadata, ["GET", "OPTIONS"])
        return [Route(one, endpoint=handler, methods=["GET", "OPTIONS"]) for one in dict.fromkeys((path, root))]

    def get_middleware(self) -> list[Any]:
        """Return what stands at the door."""
        guard = Middleware(
            Guard,
            verifier=self._verifier,
            mcp_path=self._listens_at,
            metadata_url=self.metadata_url,
            body_limit=self._body_limit,
        )
        return [guard, Middleware(AuthContextMiddleware)]

    def _listens_at(self) -> str:
        return self._mcp_path or urlsplit(self._resource).path  # The library tells the first after it asked for this.

    async def _answer_metadata(self, _request: Request) -> JSONResponse:
        metadata = {
            "resource": self._resource,
            "authorization_servers": list(self._issuers),
            "scopes_supported": list(OFFERED),
            "bearer_methods_supported": ["header"],
            "resource_name": NAME,
        }
        return JSONResponse(metadata, headers={"cache-control": f"public, max-age={METADATA_SECONDS}"})
