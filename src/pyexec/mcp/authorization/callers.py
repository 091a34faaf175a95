"""Who sent the request that is being answered."""

from dataclasses import replace
from functools import lru_cache

from fastmcp.server.auth import AccessToken
from fastmcp.server.dependencies import get_http_request
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.requests import HTTPConnection

from pyexec.auth.verification import REMEMBERED
from pyexec.domain.identities import Identity
from pyexec.domain.principals import Principal
from pyexec.http.addresses import address_of

NO_TOKEN = "-"  # noqa: S105
"""What libraries find where they look for the token: nothing behind the door has a use for it."""


class Caller(AuthenticatedUser):
    """Whom a request's token stands for, in the form in which FastMCP hands it on."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(
            AccessToken(
                token=NO_TOKEN,
                client_id=identity.client_id,
                scopes=sorted(identity.scopes),
                expires_at=None if identity.expires_at is None else int(identity.expires_at),
                subject=identity.subject,
                # Sessions of the transport belong to issuer, subject and client.
                claims={"iss": identity.issuer},
            )
        )
        self.verified = identity


@lru_cache(maxsize=REMEMBERED)
def caller_of(identity: Identity) -> Caller:
    """Return the caller whom a token stands for, the same for all its requests: making one takes a while."""
    return Caller(identity)


def identity_of(connection: HTTPConnection) -> Identity | None:
    """Return what the token of a request says, on any route; None when it has none that counts."""
    caller = connection.scope.get("user")
    return caller.verified if isinstance(caller, Caller) else None


def current_identity() -> Identity:
    """Return what the token of this very request says, on whatever connection or session it came.

    Raises:
        PermissionError: It has none; nothing may be done then.
    """
    identity = identity_of(get_http_request())
    if identity is None:
        raise PermissionError("A request without a token came through.")
    return identity


def current_principal() -> Principal:
    """Return on whose behalf this request is answered.

    Raises:
        PermissionError: It has no token.
    """
    return replace(current_identity().principal, address=address_of(get_http_request()))
