"""Ending tokens (RFC 7009), asking about them (RFC 7662), and asking about the person behind them (OpenID Connect)."""

from dataclasses import dataclass
from typing import Any

from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint

from pyexec_idp.domain.errors import WrongTokenError
from pyexec_idp.domain.secrets import hash_of
from pyexec_idp.domain.values import RefreshToken
from pyexec_idp.grants.clients import OAuthClient
from pyexec_idp.grants.context import Context
from pyexec_idp.grants.flows import AUTH_METHODS, WITH_SECRET, person_claims
from pyexec_idp.grants.minting import grant_of
from pyexec_idp.grants.wire import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """A token that somebody presents: an access token with its claims, or a refresh token."""

    client_id: str
    claims: dict[str, Any] | None = None
    refresh_token: RefreshToken | None = None

    def check_client(self, client: OAuthClient) -> bool:
        """Tell whether it is that client's."""
        return self.client_id == client.get_client_id()

    def is_expired(self) -> bool:
        """Say no: one that has is not found."""
        return False

    def is_revoked(self) -> bool:
        """Say no: one that was is not found."""
        return False


def find(context: Context, token: str) -> Presented | None:
    """Return a token that holds, whatever its kind: what it is called in the request is a hint only."""
    try:
        claims = context.mint.check(token)
    except WrongTokenError:
        found = context.grants.refresh_token(hash_of(token))
        if (
            found is None
            or found.replaced_at is not None
            or found.grant.revoked_at is not None
            or found.expires_at <= context.now()
        ):
            return None
        return Presented(client_id=found.grant.client_id, refresh_token=found)
    return Presented(client_id=str(claims.get("client_id")), claims=claims)


class Revocation(RevocationEndpoint):
    """Where clients give tokens back."""

    CLIENT_AUTH_METHODS = AUTH_METHODS

    def __init__(self, server: Any, context: Context) -> None:
        super().__init__(server)
        self.context = context

    def check_params(self, request: Request, client: OAuthClient) -> None:
        """Check that there is a token; a hint we do not know is none (RFC 7009 section 2.1 lets us say so, or not)."""
        del client
        if "token" not in request.form:
            raise InvalidRequestError("Missing 'token' in request.")

    def query_token(self, token: str, _hint: str | None) -> Presented | None:
        """Return it."""
        return find(self.context, token)

    def revoke_token(self, token: Presented, request: Request) -> None:
        """End an access token alone, but with a refresh token everything of its family."""
        context = self.context
        if token.refresh_token is not None:
            context.grants.revoke(token.refresh_token.grant.id, context.now())
        elif token.claims is not None:
            context.grants.revoke_token(str(token.claims["jti"]), float(token.claims["exp"]))
        context.audit.note("token_revoked", client_id=request.client.get_client_id())


class Introspection(IntrospectionEndpoint):
    """Where servers ask about tokens that were sent to them."""

    CLIENT_AUTH_METHODS = WITH_SECRET

    def __init__(self, server: Any, context: Context) -> None:
        super().__init__(server)
        self.context = context

    def check_params(self, request: Request, client: OAuthClient) -> None:
        """Check that there is a token."""
        del client
        if "token" not in request.form:
            raise InvalidRequestError("Missing 'token' in request.")

    def query_token(self, token: str, _hint: str | None) -> Presented | None:
        """Return it."""
        return find(self.context, token)

    def check_permission(self, token: Presented, client: OAuthClient, request: Request) -> bool:
        """Tell whether a client may know: the one that has the token, or the one it is for."""
        del request
        if token.check_client(client):
            return True
        return token.claims is not None and token.claims.get("aud") in client.client.introspects

    def introspect_token(self, token: Presented) -> dict[str, Any]:
        """Return what there is to know."""
        if token.claims is not None:
            return {**token.claims, "active": True, "token_type": "Bearer"}
        found = token.refresh_token
        if found is None:
            return {"active": False}
        return {
            "active": True,
            "iss": self.context.issuer,
            "client_id": token.client_id,
            "sub": found.grant.user_id,
            "aud": found.grant.resource,
            "scope": " ".join(found.grant.scopes),
            "exp": int(found.expires_at),
        }


def userinfo(context: Context, token: str) -> dict[str, Any] | None:
    """Return what the holder of an access token may know about its person, None where the scope openid is missing.

    Raises:
        WrongTokenError: The token does not hold.
    """
    claims = context.mint.check(token)
    scopes = frozenset(str(claims.get("scope", "")).split())
    if "openid" not in scopes or grant_of(str(claims["jti"])) is None:
        return None
    user = context.people.active(str(claims["sub"]))
    if user is None:
        raise WrongTokenError("The user is disabled.")
    return person_claims(user, scopes)
