"""The authorization server: Authlib's, bound to our requests, clients and grants."""

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from authlib.oauth2 import AuthorizationServer, OAuth2Error
from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc9207 import IssuerParameter

from pyexec_idp.domain.calls import Call
from pyexec_idp.grants.clients import OAuthClient
from pyexec_idp.grants.context import Context
from pyexec_idp.grants.device import DeviceGrant
from pyexec_idp.grants.flows import (
    CodeGrant,
    ContextualGrant,
    MachineGrant,
    OpenId,
    Pkce,
    RefreshGrant,
    ResourceIndicators,
)
from pyexec_idp.grants.wire import Answer, Request, from_form, to_answer

_ONCE = (
    "client_id",
    "client_secret",
    "code",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
    "device_code",
    "grant_type",
    "max_age",
    "nonce",
    "prompt",
    "redirect_uri",
    "refresh_token",
    "response_type",
    "scope",
    "state",
    "token",
    "token_type_hint",
)
"""What may not be sent twice; of resources, several are only too many."""


class Issuer(IssuerParameter):
    """The issuer's name in every answer that goes through the browser (RFC 9207)."""

    def __init__(self, server: "Server") -> None:
        self._issuer = server.context.issuer

    def get_issuer(self) -> str:
        """Return it."""
        return self._issuer


class Server(AuthorizationServer):
    """Answers at the token endpoint, and for the browser."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context
        self._issuer = Issuer(self)
        self.register_grant(
            _bound(CodeGrant, context), [Pkce(required=True), ResourceIndicators(context), OpenId(context)]
        )
        self.register_grant(_bound(RefreshGrant, context))
        self.register_grant(_bound(MachineGrant, context))
        self.register_grant(_bound(DeviceGrant, context))

    def query_client(self, client_id: str) -> OAuthClient | None:
        """Return the client of an id."""
        found = self.context.clients.find(client_id)
        return None if found is None else OAuthClient(found)

    def create_oauth2_request(self, request: Request) -> Request:
        """Return it: it is one already."""
        return request

    def handle_response(self, status: int, body: Any, headers: list[tuple[str, str]]) -> Answer:
        """Return an answer."""
        return to_answer(status, body, headers)

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def validate_requested_scope(self, scope: str | None) -> None:
        """Leave that to the register, which knows the resource too."""

    def refuse(self, request: Request, error: OAuth2Error) -> Answer:
        """Return the answer to a refused authorization request, with the issuer's name where it is a redirect."""
        answer: Answer = self.handle_error_response(request, error)
        self._issuer.add_issuer_parameter(self, answer)
        return answer

    def allow(self, request: Request, grant: Any, by: Any) -> Answer:
        """Return the redirect with the code, or with the refusal where `by` is nobody."""
        answer: Answer = self.create_authorization_response(request, by, grant)
        self._issuer.add_issuer_parameter(self, answer)
        return answer

    def token(self, call: Call) -> Answer:
        """Answer at the token endpoint."""
        request = from_form(call)
        refused = self.refuse_malformed(request)
        if refused is not None:
            return refused
        try:
            return self.create_token_response(request)
        except ValueError:  # Authlib's own message has a character in it that errors may not have.
            return self.handle_error_response(request, InvalidRequestError())

    def at(self, endpoint: Callable[["Server", Context], Any], call: Call) -> Answer:
        """Answer at one of the other endpoints that clients post to."""
        request = from_form(call)
        refused = self.refuse_malformed(request)
        if refused is not None:
            return refused
        try:
            return self.handle_response(*endpoint(self, self.context)(request))
        except OAuth2Error as error:
            return self.handle_error_response(request, error)

    def refuse_malformed(self, request: Request) -> Answer | None:
        """Return the refusal of a request with a parameter that came twice, or that holds what none may hold."""
        fault = malformed(request)
        return None if fault is None else self.handle_error_response(request, InvalidRequestError(fault))


def malformed(request: Request) -> str | None:
    """Return what is wrong with the parameters of a request as such."""
    lists = request.payload.datalist
    for name in _ONCE:
        if len(lists.get(name, ())) > 1:
            return f"Multiple '{name}' in request."
    for values in list(lists.values()):
        if any(not value.isprintable() for value in values):
            return "A parameter has characters that are not printable."
    return _unclear_client(request)


def _unclear_client(request: Request) -> str | None:
    """Return what is wrong where the header and the form both say who asks (RFC 6749 section 2.3: in one way only)."""
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        named = unquote(base64.b64decode(encoded).decode().partition(":")[0])
    except ValueError:
        return "The Authorization header cannot be read."
    if "client_secret" in request.form or request.form.get("client_id", named) != named:
        return "The client says in two ways who it is."
    return None


def _bound(kind: type[ContextualGrant], context: Context) -> type[ContextualGrant]:
    """Return a grant that knows its context: Authlib makes one for each request, by its class."""
    return type(kind.__name__, (kind,), {"context": context})
