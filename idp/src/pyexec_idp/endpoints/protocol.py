"""What programs call: tokens, registration, and questions about them."""

from typing import Any

from starlette.responses import JSONResponse, Response

from pyexec_idp.domain.calls import Call
from pyexec_idp.domain.errors import TooManyError, WrongTokenError
from pyexec_idp.grants.context import Context
from pyexec_idp.grants.device import DeviceEndpoint
from pyexec_idp.grants.inspection import Introspection, Revocation, userinfo
from pyexec_idp.grants.metadata import metadata
from pyexec_idp.grants.registration import MetadataError, Registration
from pyexec_idp.grants.server import Server
from pyexec_idp.grants.wire import Answer
from pyexec_idp.keys.ring import KeyRing

_FRESH = {"Cache-Control": "public, max-age=300"}


class Protocol:
    """The endpoints. Who a client is, Authlib finds out; nobody here has a cookie."""

    def __init__(self, context: Context, server: Server, ring: KeyRing, registration: Registration | None) -> None:
        self._context = context
        self._server = server
        self._ring = ring
        self._registration = registration

    def metadata(self, _call: Call) -> Response:
        """Say what there is."""
        document = metadata(self._context, registration=self._registration is not None)
        return JSONResponse(document, headers=_FRESH)

    def jwks(self, _call: Call) -> Response:
        """Publish the keys."""
        return JSONResponse(self._ring.published(), headers=_FRESH)

    def token(self, call: Call) -> Response:
        """Give tokens."""
        return _response(self._server.token(call))

    def revoke(self, call: Call) -> Response:
        """Take tokens back."""
        return _response(self._server.at(Revocation, call))

    def introspect(self, call: Call) -> Response:
        """Tell about tokens."""
        return _response(self._server.at(Introspection, call))

    def device_authorization(self, call: Call) -> Response:
        """Give a device a code to show."""
        return _response(self._server.at(DeviceEndpoint, call))

    def register(self, call: Call) -> Response:
        """Take a client in."""
        if self._registration is None:
            return JSONResponse({"error": "access_denied"}, status_code=403)
        try:
            return JSONResponse(self._registration.register(call), status_code=201)
        except MetadataError as error:
            return JSONResponse({"error": error.code, "error_description": error.message}, status_code=400)
        except TooManyError as error:
            body = {"error": "temporarily_unavailable", "error_description": error.message}
            return JSONResponse(body, status_code=429, headers={"Retry-After": "900"})

    def userinfo(self, call: Call) -> Response:
        """Tell who the person is."""
        scheme, _, token = call.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return _challenge(401, {})
        try:
            found = userinfo(self._context, token.strip())
        except WrongTokenError as error:
            return _challenge(401, {"error": "invalid_token", "error_description": error.message})
        if found is None:
            return _challenge(403, {"error": "insufficient_scope", "scope": "openid"})
        return JSONResponse(found)


def _challenge(status: int, said: dict[str, str]) -> Response:
    words = ", ".join(f'{key}="{value}"' for key, value in said.items())
    return JSONResponse(said, status_code=status, headers={"WWW-Authenticate": f"Bearer {words}".strip()})


def _response(answer: Answer) -> Response:
    body: dict[str, Any] = dict(answer.body)
    return JSONResponse(body, status_code=answer.status, headers=answer.headers)
