"""The authorization endpoint without its pages: what a request needs next, and what a decision leads to."""

from dataclasses import dataclass
from typing import Any

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AccessDeniedError, InvalidRequestError
from authlib.oidc.core.errors import ConsentRequiredError, LoginRequiredError

from pyexec_idp.domain.urls import is_loopback, shown_host
from pyexec_idp.domain.values import Client, SignIn
from pyexec_idp.grants.clients import OAuthClient
from pyexec_idp.grants.context import Context
from pyexec_idp.grants.scopes import Asked
from pyexec_idp.grants.server import Server, malformed
from pyexec_idp.grants.wire import Pairs, Request

PATH = "/authorize"
_PROMPTS = {"none", "login", "consent", "select_account"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsafe:
    """The request may not be answered by a redirect: who asks, or where the answer should go, is not known."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoTo:
    """The browser goes on to there."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInFirst:
    """Somebody has to sign in, and then comes back with these parameters; from there it may go on to the client."""

    pairs: Pairs
    redirect_uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPerson:
    """The person has to decide on this."""

    client: Client
    redirect_uri: str
    redirect_host: str
    is_local: bool
    words: dict[str, str]
    resource_name: str | None
    resource: str
    pairs: Pairs


Next = Unsafe | GoTo | SignInFirst | AskPerson


class Authorizations:
    """Looks at authorization requests, each time anew: nothing of them is kept before they are allowed."""

    def __init__(self, context: Context, server: Server) -> None:
        self._context = context
        self._server = server

    def consider(self, pairs: Pairs, sign_in: SignIn | None) -> Next:
        """Return what a request needs next."""
        looked = self._look(pairs, sign_in)
        if not isinstance(looked, _Valid):
            return looked
        request, client = looked.request, looked.client
        prompts = looked.prompts
        if sign_in is None or "login" in prompts or "select_account" in prompts or self._is_old(request, sign_in):
            if "none" in prompts:
                return self._refused(request, LoginRequiredError(redirect_uri=looked.redirect_uri))
            return SignInFirst(pairs=_without_prompts(pairs), redirect_uri=looked.redirect_uri)
        known = self._context.grants.consented(sign_in.user.id, client.id, request.resource)
        if client.is_verified and "consent" not in prompts and known.issuperset(request.scopes):
            return self._allowed(looked, sign_in)
        if "none" in prompts:
            return self._refused(request, ConsentRequiredError(redirect_uri=looked.redirect_uri))
        return self._ask(looked, pairs)

    def decide(self, pairs: Pairs, sign_in: SignIn, *, allow: bool) -> Next:
        """Return what the person's decision leads to."""
        looked = self._look(pairs, sign_in)
        if not isinstance(looked, _Valid):
            return looked
        request, client = looked.request, looked.client
        if not allow:
            self._context.audit.note("consent_refused", user_id=sign_in.user.id, client_id=client.id)
            return self._refused(request, AccessDeniedError(redirect_uri=looked.redirect_uri))
        if client.is_verified:
            scopes = frozenset(request.scopes)
            self._context.grants.remember(sign_in.user.id, client.id, request.resource, scopes, self._context.now())
        return self._allowed(looked, sign_in)

    def _look(self, pairs: Pairs, sign_in: SignIn | None) -> "_Valid | Unsafe | GoTo":
        request = Request("GET", pairs)
        client = self._safe_client(request)
        if not isinstance(client, OAuthClient):
            return client
        redirect_uri = request.payload.redirect_uri or client.get_default_redirect_uri()
        try:
            fault = malformed(request)
            if fault is not None:
                raise InvalidRequestError(fault, redirect_uri=redirect_uri)
            if "request" in request.args or "request_uri" in request.args:
                raise _NoRequestObjectsError(redirect_uri=redirect_uri)
            if request.args.get("response_mode", "query") != "query":
                raise InvalidRequestError("The only response_mode is query.", redirect_uri=redirect_uri)
            if not request.args.get("max_age", "0").isdecimal():
                raise InvalidRequestError("max_age is a number of seconds.", redirect_uri=redirect_uri)
            prompts = frozenset(request.args.get("prompt", "").split())
            if not prompts <= _PROMPTS or ("none" in prompts and len(prompts) > 1):
                raise InvalidRequestError("Invalid 'prompt' parameter.", redirect_uri=redirect_uri)
            # Authlib's own look at `prompt` is left out of it: who is signed in decides above.
            grant = self._server.get_consent_grant(_unprompted(request), end_user=sign_in)
        except OAuth2Error as error:
            error.redirect_uri = error.redirect_uri or redirect_uri
            error.state = request.payload.state
            return self._refused(request, error)
        except ValueError:  # Authlib's own message has a character in it that errors may not have.
            return self._refused(request, InvalidRequestError(redirect_uri=redirect_uri, state=request.payload.state))
        return _Valid(
            request=grant.request, grant=grant, client=client.client, redirect_uri=redirect_uri or "", prompts=prompts
        )

    def _safe_client(self, request: Request) -> OAuthClient | Unsafe:
        """Return who asks, unless the answer cannot go anywhere."""
        lists = request.payload.datalist
        if len(lists.get("client_id", ())) != 1 or len(lists.get("redirect_uri", ())) > 1:
            return Unsafe(reason="The application that sent you here did not say which one it is, or said so twice.")
        client = self._server.query_client(request.args["client_id"])
        if client is None:
            return Unsafe(reason="The application that sent you here is not known.")
        redirect_uri = request.payload.redirect_uri or client.get_default_redirect_uri()
        if redirect_uri is None or not client.check_redirect_uri(redirect_uri):
            return Unsafe(reason="The application asked for an answer at an address that it has not registered.")
        return client

    def _is_old(self, request: Request, sign_in: SignIn) -> bool:
        max_age = request.args.get("max_age")
        return max_age is not None and self._context.now() - sign_in.created_at > float(max_age[:10])

    def _ask(self, looked: "_Valid", pairs: Pairs) -> AskPerson:
        request = looked.request
        resource = self._context.register.named(request.resource)
        return AskPerson(
            client=looked.client,
            redirect_uri=looked.redirect_uri,
            redirect_host=shown_host(looked.redirect_uri),
            is_local=is_loopback(looked.redirect_uri),
            words=self._context.register.words(Asked(scopes=request.scopes, resource=request.resource)),
            resource_name=None if resource is None else resource.name,
            resource=request.resource,
            pairs=pairs,
        )

    def _allowed(self, looked: "_Valid", sign_in: SignIn) -> GoTo:
        looked.request.sign_in = sign_in
        answer = self._server.allow(looked.request, looked.grant, sign_in.user)
        return GoTo(url=answer.location or "")

    def _refused(self, request: Request, error: OAuth2Error) -> GoTo | Unsafe:
        error.state = request.payload.state
        answer = self._server.refuse(request, error)
        if answer.location is None:
            return Unsafe(reason="The application sent a request that cannot be answered.")
        return GoTo(url=answer.location)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Valid:
    request: Request
    grant: Any
    client: Client
    redirect_uri: str
    prompts: frozenset[str]


class _NoRequestObjectsError(OAuth2Error):
    error = "request_not_supported"


def _unprompted(request: Request) -> Request:
    pairs = tuple(
        (key, value) for key, values in request.payload.datalist.items() if key != "prompt" for value in values
    )
    return Request(request.method, pairs)


def _without_prompts(pairs: Pairs) -> Pairs:
    """Return the parameters for the way back from the sign-in, which has done what these asked for."""
    kept: list[tuple[str, str]] = []
    for key, value in pairs:
        if key == "max_age":
            continue
        if key == "prompt":
            value = " ".join(one for one in value.split() if one not in {"login", "select_account"})
        if value:
            kept.append((key, value))
    return tuple(kept)
