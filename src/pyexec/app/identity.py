"""How the service finds out who asks: the one place where authorization is put in."""

from collections.abc import Callable
from dataclasses import dataclass

from fastmcp.server.auth import AuthProvider
from starlette.requests import HTTPConnection

from pyexec.domain.principals import Principal

ANYONE = Principal(issuer="anyone", subject="")
"""Who asks where nobody has to say who they are; not the OS user, whose jobs and scripts are not everybody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """Who asks, over MCP and over plain routes.

    Attributes:
        provider: Verifies tokens; None: nobody has to say who they are.
        principal: Tells who has made the MCP request that is under way.
        principal_of: Tells who has made a plain request; raises `NotKnownError` where nobody knows.
    """

    provider: AuthProvider | None
    principal: Callable[[], Principal]
    principal_of: Callable[[HTTPConnection], Principal]


def without_authorization() -> Identities:
    """Return what takes everybody for the same."""
    return Identities(provider=None, principal=lambda: ANYONE, principal_of=lambda _request: ANYONE)
