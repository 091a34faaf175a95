"""Clients that register themselves (RFC 7591)."""

import json
from collections.abc import Mapping
from typing import Any, cast

from authlib.oauth2.rfc8628 import DEVICE_CODE_GRANT_TYPE

from pyexec_idp.domain.calls import Call
from pyexec_idp.domain.errors import InvalidRedirectError, TooManyError
from pyexec_idp.domain.secrets import Clock, hash_of, new_id, new_secret, wall_clock
from pyexec_idp.domain.urls import LONGEST, check_redirect
from pyexec_idp.domain.values import Bounds, Client, Origin
from pyexec_idp.grants.flows import AUTH_METHODS
from pyexec_idp.stores.attempts import AttemptStore, Audit
from pyexec_idp.stores.clients import ClientStore

_GRANT_TYPES = ("authorization_code", "refresh_token", DEVICE_CODE_GRANT_TYPE)
"""Not client_credentials: whoever registers would have a token without anybody's leave."""
_MOST_URIS = 20
_LONGEST_NAME = 100


class MetadataError(Exception):
    """What a client says about itself cannot be accepted; `code` is RFC 7591's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Registration:
    """Takes clients in that nobody has vouched for: few at a time, and never trusted."""

    def __init__(
        self,
        *,
        store: ClientStore,
        attempts: AttemptStore,
        audit: Audit,
        bounds: Bounds,
        redirect_schemes: tuple[str, ...] = (),
        now: Clock = wall_clock,
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._audit = audit
        self._bounds = bounds
        self._schemes = redirect_schemes
        self._now = now

    def register(self, call: Call) -> dict[str, Any]:
        """Take a client in; return what RFC 7591 answers, its secret included, where it has one.

        Raises:
            MetadataError: What it says about itself cannot be accepted.
            TooManyError: There are too many, from that address or altogether.
        """
        now, key = self._now(), f"register:{call.address}"
        if self._attempts.count(key, now - self._bounds.window) >= self._bounds.registrations_per_address:
            raise TooManyError("Too many registrations from this address. Wait a quarter of an hour.")
        self._attempts.add((key,), now)
        if self._store.count(Origin.DYNAMIC) >= self._bounds.dynamic_clients:
            self._audit.note("registrations_full", address=call.address)
            raise TooManyError("There are too many registered clients.")
        said = read_object(call.body)
        described = described_client(said, client_id=new_id(), origin=Origin.DYNAMIC, schemes=self._schemes)
        secret = None if described.auth_method == "none" else new_secret()
        client = _with(described, secret, now)
        self._store.add(client)
        self._audit.note("client_registered", client_id=client.id, address=call.address, name=client.name)
        return registered(client, secret)


def registered(client: Client, secret: str | None) -> dict[str, Any]:
    """Return what a client is told about itself."""
    body: dict[str, Any] = {
        "client_id": client.id,
        "client_id_issued_at": int(client.created_at),
        "client_name": client.name,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": list(client.grant_types),
        "response_types": ["code"] if "authorization_code" in client.grant_types else [],
        "token_endpoint_auth_method": client.auth_method,
    }
    if client.scopes:
        body["scope"] = " ".join(client.scopes)
    if client.uri is not None:
        body["client_uri"] = client.uri
    if client.post_logout_redirect_uris:
        body["post_logout_redirect_uris"] = list(client.post_logout_redirect_uris)
    if secret is not None:
        body |= {"client_secret": secret, "client_secret_expires_at": 0}
    return body


def read_object(body: bytes) -> Mapping[str, Any]:
    """Return a JSON object.

    Raises:
        MetadataError: It is none.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise MetadataError("invalid_client_metadata", "The body must be a JSON object.")
    return cast("Mapping[str, Any]", value)


def described_client(said: Mapping[str, Any], *, client_id: str, origin: Origin, schemes: tuple[str, ...]) -> Client:
    """Return the client that metadata describe, RFC 7591's defaults filled in.

    Raises:
        MetadataError: They cannot be accepted.
    """
    grant_types = _texts(said, "grant_types") or ("authorization_code",)
    if not set(grant_types) <= set(_GRANT_TYPES):
        raise MetadataError("invalid_client_metadata", f"grant_types are of {', '.join(_GRANT_TYPES)}.")
    if not set(_texts(said, "response_types")) <= {"code"}:
        raise MetadataError("invalid_client_metadata", "The only response type is code.")
    method = said.get("token_endpoint_auth_method", "client_secret_basic")
    if method not in AUTH_METHODS:
        raise MetadataError("invalid_client_metadata", f"token_endpoint_auth_method is of {', '.join(AUTH_METHODS)}.")
    if said.get("software_statement") is not None:
        raise MetadataError("invalid_software_statement", "Software statements are not accepted.")
    redirect_uris = _redirects(said, "redirect_uris", schemes)
    if not redirect_uris and "authorization_code" in grant_types:
        raise MetadataError("invalid_redirect_uri", "redirect_uris needs at least one.")
    return Client(
        id=client_id,
        name=_name(said),
        origin=origin,
        auth_method=method,
        redirect_uris=redirect_uris,
        grant_types=grant_types,
        scopes=_scopes(said),
        post_logout_redirect_uris=_redirects(said, "post_logout_redirect_uris", schemes),
        uri=_uri(said),
    )


def _with(client: Client, secret: str | None, now: float) -> Client:
    return Client(
        id=client.id,
        name=client.name,
        origin=client.origin,
        auth_method=client.auth_method,
        secret_hash=None if secret is None else hash_of(secret),
        redirect_uris=client.redirect_uris,
        grant_types=client.grant_types,
        scopes=client.scopes,
        post_logout_redirect_uris=client.post_logout_redirect_uris,
        uri=client.uri,
        created_at=now,
    )


def _texts(said: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = said.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise MetadataError("invalid_client_metadata", f"{name} must be a list of texts.")
    items = cast("list[Any]", value)
    if len(items) > _MOST_URIS or not all(isinstance(one, str) and len(one) <= LONGEST for one in items):
        raise MetadataError("invalid_client_metadata", f"{name} must be a list of at most {_MOST_URIS} texts.")
    return tuple(cast("list[str]", items))


def _redirects(said: Mapping[str, Any], name: str, schemes: tuple[str, ...]) -> tuple[str, ...]:
    try:
        uris = _texts(said, name)
        for uri in uris:
            check_redirect(uri, schemes)
    except (InvalidRedirectError, MetadataError) as error:
        raise MetadataError("invalid_redirect_uri", error.message) from error
    return uris


def _name(said: Mapping[str, Any]) -> str:
    value = said.get("client_name", "")
    if not isinstance(value, str):
        raise MetadataError("invalid_client_metadata", "client_name must be a text.")
    return "".join(one for one in value if one.isprintable()).strip()[:_LONGEST_NAME] or "An application without a name"


def _scopes(said: Mapping[str, Any]) -> tuple[str, ...]:
    value = said.get("scope", "")
    if not isinstance(value, str) or len(value) > LONGEST:
        raise MetadataError("invalid_client_metadata", "scope must be a text.")
    return tuple(dict.fromkeys(value.split()))


def _uri(said: Mapping[str, Any]) -> str | None:
    value = said.get("client_uri")
    if value is None:
        return None
    if not isinstance(value, str) or not value.startswith("https://") or len(value) > LONGEST:
        raise MetadataError("invalid_client_metadata", "client_uri must be an https URL.")
    return value
