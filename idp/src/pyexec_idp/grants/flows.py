"""The ways to tokens: a code, a refresh token, a client's own secret."""

from typing import Any, TypeVar

from authlib.oauth2.rfc6749 import (
    AuthorizationCodeGrant,
    BaseGrant,
    ClientCredentialsGrant,
    InvalidGrantError,
    InvalidRequestError,
    RefreshTokenGrant,
)
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import OpenIDCode
from joserfc.jwk import ECKey

from pyexec_idp.domain.secrets import hash_of, new_id, new_secret
from pyexec_idp.domain.values import OPENID_SCOPES, Code, Grant, User
from pyexec_idp.grants.clients import OAuthClient
from pyexec_idp.grants.context import Context
from pyexec_idp.grants.wire import Request
from pyexec_idp.keys.ring import ALGORITHM

Value = TypeVar("Value")

WITH_SECRET = ["client_secret_basic", "client_secret_post"]
AUTH_METHODS = [*WITH_SECRET, "none"]
_ONLY_S256 = ["S256"]


class ContextualGrant(BaseGrant):
    """A grant that knows what it works with. Subclasses are made per installation, by `bound`."""

    context: Context  # pyright: ignore[reportUninitializedInstanceVariable]
    request: Request

    def client_id(self) -> str:
        """Return who asks."""
        return self.request.client.get_client_id()

    def audit(self, what: str, **more: Any) -> None:
        """Note what happened."""
        self.context.audit.note(what, client_id=self.client_id(), **more)

    def tokens(self, grant: Grant, scopes: tuple[str, ...], refresh_token: str | None) -> dict[str, Any]:
        """Return the body that gives tokens away."""
        body: dict[str, Any] = {
            "access_token": self.context.mint.for_grant(grant, scopes),
            "token_type": "Bearer",
            "expires_in": int(self.context.lifetimes.access_token),
            "scope": " ".join(scopes),
        }
        return body if refresh_token is None else {**body, "refresh_token": refresh_token}

    def check_resource(self, allowed: str) -> None:
        """Check that the resource named at the token endpoint is the one that was allowed."""
        self.context.register.same(allowed, self.request.payload.datalist["resource"])


class CodeGrant(ContextualGrant, AuthorizationCodeGrant):
    """Authorization code, with PKCE always."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS

    def save_authorization_code(self, code: str, request: Request) -> None:
        """Keep what was allowed, and the code that stands for it."""
        sign_in = request.sign_in
        if sign_in is None:
            raise InvalidRequestError("Nobody is signed in.")
        now = self.context.now()
        grant = Grant(
            id=new_id(),
            user_id=sign_in.user.id,
            client_id=self.client_id(),
            scopes=request.scopes,
            resource=request.resource,
            auth_time=sign_in.created_at,
            created_at=now,
        )
        data = request.payload.data
        kept = Code(
            hash=hash_of(code),
            grant=grant,
            redirect_uri=data.get("redirect_uri", ""),
            challenge=data["code_challenge"],
            nonce=data.get("nonce"),
            expires_at=now + self.context.lifetimes.code,
        )
        self.context.grants.add(grant, kept)
        self.audit("code_given", user_id=grant.user_id, resource=grant.resource, scopes=list(grant.scopes))

    def query_authorization_code(self, code: str, client: OAuthClient) -> "HeldCode | None":
        """Return a code that can be used. One that was used before ends everything it gave (RFC 9700)."""
        now = self.context.now()
        found = self.context.grants.code(hash_of(code))
        if found is None or found.grant.client_id != client.get_client_id():
            return None
        self.request.client = client
        if found.used_at is not None:
            if self.context.grants.revoke(found.grant.id, now):
                self.audit("code_replayed", user_id=found.grant.user_id)
            return None
        if found.expires_at <= now or found.grant.revoked_at is not None:
            return None
        self.request.code = found
        return HeldCode(found, self.request)

    def authenticate_user(self, authorization_code: "HeldCode") -> User | None:
        """Return who allowed it, unless they are disabled by now."""
        grant = authorization_code.code.grant
        self.check_resource(grant.resource)
        self.request.grant = grant
        return self.context.people.active(grant.user_id)

    def generate_token(self, *, include_refresh_token: bool = True, **_given: Any) -> dict[str, Any]:
        """Return the tokens."""
        grant = _known(self.request.grant)
        return self.tokens(grant, grant.scopes, new_secret() if include_refresh_token else None)

    def save_token(self, token: dict[str, Any]) -> None:
        """Take the code: of two that came at once, one gets tokens, and loses them to the other's replay."""
        code = _known(self.request.code)
        now = self.context.now()
        refresh_token = token.get("refresh_token")
        kept = None if refresh_token is None else hash_of(refresh_token)
        expires_at = now + self.context.lifetimes.refresh_token_idle
        if not self.context.grants.use_code(code, now, kept, expires_at):
            self.context.grants.revoke(code.grant.id, now)
            self.audit("code_replayed", user_id=code.grant.user_id)
            raise InvalidGrantError("Invalid 'code' in request.")
        self.audit("tokens_given", user_id=code.grant.user_id)

    def delete_authorization_code(self, authorization_code: "HeldCode") -> None:
        """Do nothing: a used code is kept to know a replay by."""


class HeldCode:
    """A code as Authlib asks it about itself."""

    def __init__(self, code: Code, request: Request) -> None:
        self.code = code
        self.code_challenge = code.challenge
        self.code_challenge_method = "S256"
        self._request = request

    def get_redirect_uri(self) -> str | None:
        """Return where it went, if the client names it again: OAuth 2.1 no longer asks for that, PKCE does better."""
        return self.code.redirect_uri if self._request.payload.redirect_uri else None

    def get_scope(self) -> str:
        """Return what was allowed."""
        return " ".join(self.code.grant.scopes)

    def get_nonce(self) -> str | None:
        """Return the client's own mark for the ID token."""
        return self.code.nonce

    def get_auth_time(self) -> int:
        """Return when the password was given."""
        return int(self.code.grant.auth_time)

    def get_acr(self) -> None:
        """Return nothing: there are no classes of sign-in here."""

    def get_amr(self) -> list[str]:
        """Return how the person signed in."""
        return ["pwd"]


class RefreshGrant(ContextualGrant, RefreshTokenGrant):
    """Refresh tokens: each is good once, and its successor is the same however often it is asked for in the grace."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> "HeldRefreshToken | None":
        """Return a refresh token that can be used. One that was replaced before the grace ends its whole family."""
        now = self.context.now()
        found = self.context.grants.refresh_token(hash_of(refresh_token))
        if found is None or found.grant.client_id != self.client_id() or found.grant.revoked_at is not None:
            return None
        if found.replaced_at is not None:
            in_time = now - found.replaced_at <= self.context.lifetimes.refresh_grace
            if not in_time and self.context.grants.revoke(found.grant.id, now):
                self.audit("refresh_token_reused", user_id=found.grant.user_id)
            if not in_time or found.successor_replaced:
                return None
        if found.expires_at <= now:
            return None
        self.request.token = found
        self.request.presented = refresh_token
        self.request.grant = found.grant
        return HeldRefreshToken(found.grant)

    def authenticate_user(self, refresh_token: "HeldRefreshToken") -> User:
        """Return who allowed it, unless they are disabled by now."""
        self.check_resource(refresh_token.grant.resource)
        user = self.context.people.active(refresh_token.grant.user_id)
        if user is None:
            raise InvalidGrantError
        return user

    def generate_token(self, *, scope: str = "", **_given: Any) -> dict[str, Any]:
        """Return the tokens; the access token may have fewer scopes than were allowed."""
        successor = self.context.pepper.derive("refresh", self.request.presented)
        return self.tokens(_known(self.request.grant), tuple(dict.fromkeys(scope.split())), successor)

    def save_token(self, token: dict[str, Any]) -> None:
        """Put the successor in the place of the one that was presented."""
        old = _known(self.request.token)
        now = self.context.now()
        expires_at = now + self.context.lifetimes.refresh_token_idle
        self.context.grants.replace(old, hash_of(token["refresh_token"]), now, expires_at)
        self.audit("tokens_refreshed", user_id=old.grant.user_id)

    def revoke_old_credential(self, refresh_token: "HeldRefreshToken") -> None:
        """Do nothing: it was replaced with the same stroke that kept its successor."""


class HeldRefreshToken:
    """A refresh token as Authlib asks it about itself."""

    def __init__(self, grant: Grant) -> None:
        self.grant = grant

    def check_client(self, client: OAuthClient) -> bool:
        """Tell whether it is that client's."""
        return client.get_client_id() == self.grant.client_id

    def get_scope(self) -> str:
        """Return what was allowed."""
        return " ".join(self.grant.scopes)


class MachineGrant(ContextualGrant, ClientCredentialsGrant):
    """A client for itself, by its secret; only the operator can allow that."""

    TOKEN_ENDPOINT_AUTH_METHODS = WITH_SECRET

    def validate_requested_scope(self) -> None:
        """Check what it asks for."""
        payload = self.request.payload
        asked = self.context.register.complete(self.request.client.client, payload.scope, payload.datalist["resource"])
        self.request.scopes = tuple(one for one in asked.scopes if one not in OPENID_SCOPES)
        self.request.resource = asked.resource

    def generate_token(self, **_given: Any) -> dict[str, Any]:
        """Return the token."""
        request = self.request
        return {
            "access_token": self.context.mint.for_client(self.client_id(), request.scopes, request.resource),
            "token_type": "Bearer",
            "expires_in": int(self.context.lifetimes.access_token),
            "scope": " ".join(request.scopes),
        }

    def save_token(self, token: dict[str, Any]) -> None:
        """Note that it was given."""
        self.context.clients.used(self.client_id())
        self.audit("machine_token_given")


class Pkce(CodeChallenge):
    """PKCE with S256 only, and looked at where the code is asked for."""

    SUPPORTED_CODE_CHALLENGE_METHOD = _ONLY_S256
    DEFAULT_CODE_CHALLENGE_METHOD = "S256"

    def validate_code_challenge(self, grant: BaseGrant, redirect_uri: str) -> None:
        """Check that there is a challenge, made with S256."""
        data = grant.request.payload.data
        if not data.get("code_challenge") or data.get("code_challenge_method") != "S256":
            raise InvalidRequestError("PKCE is needed: code_challenge with code_challenge_method=S256.")
        super().validate_code_challenge(grant, redirect_uri)


class ResourceIndicators:
    """RFC 8707: one resource, of the register, with scopes that it has."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __call__(self, grant: BaseGrant) -> None:
        """Take part in what the grant does."""
        grant.register_hook("after_validate_authorization_request_payload", self.check)

    def check(self, grant: CodeGrant, _redirect_uri: str) -> None:
        """Check what is asked for."""
        request = grant.request
        payload = request.payload
        asked = self._context.register.complete(request.client.client, payload.scope, payload.datalist["resource"])
        request.scopes = asked.scopes
        request.resource = asked.resource
        request.scope = " ".join(asked.scopes)


class OpenId(OpenIDCode):
    """The ID token."""

    def __init__(self, context: Context) -> None:
        super().__init__(require_nonce=False)
        self._context = context

    def exists_nonce(self, _nonce: str, _request: Request) -> bool:
        """Say no: the nonce is for the client to look at, and a code is good once."""
        return False

    def resolve_client_private_key(self, _client: OAuthClient) -> ECKey:
        """Return the key to sign with."""
        return self._context.signer.key()

    def get_client_algorithm(self, _client: OAuthClient) -> str:
        """Return how it is signed."""
        return ALGORITHM

    def get_encode_header(self, client: OAuthClient) -> dict[str, str]:
        """Return the header, with the key's name."""
        key = self.resolve_client_private_key(client)
        return {"typ": "JWT", "alg": ALGORITHM, "kid": key.thumbprint()}

    def get_client_claims(self, client: OAuthClient) -> dict[str, Any]:
        """Return whose it is, for whom and for how long."""
        now = int(self._context.now())
        return {
            "iss": self._context.issuer,
            "aud": client.get_client_id(),
            "azp": client.get_client_id(),
            "iat": now,
            "exp": now + int(self._context.lifetimes.id_token),
        }

    def generate_user_info(self, user: User, scope: str) -> dict[str, Any]:
        """Return who signed in."""
        return person_claims(user, frozenset(scope.split()))


def person_claims(user: User, scopes: frozenset[str]) -> dict[str, Any]:
    """Return what clients with these scopes may know about somebody."""
    claims: dict[str, Any] = {"sub": user.id}
    if "profile" in scopes:
        claims |= {"preferred_username": user.name, "name": user.display_name or user.name}
    if "email" in scopes and user.email is not None:
        claims["email"] = user.email
    return claims


def _known(value: Value | None) -> Value:
    if value is None:
        raise InvalidGrantError
    return value
