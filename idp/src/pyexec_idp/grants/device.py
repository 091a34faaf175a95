"""Devices without a browser (RFC 8628): they show a code, and somebody allows them from another device."""

import secrets
from typing import Any

from authlib.oauth2.rfc6749 import InvalidGrantError, UnauthorizedClientError
from authlib.oauth2.rfc8628 import DEVICE_CODE_GRANT_TYPE, DeviceAuthorizationEndpoint, DeviceCodeGrant

from pyexec_idp.domain.secrets import hash_of, new_id, new_secret
from pyexec_idp.domain.values import Device, Grant, SignIn, User
from pyexec_idp.grants.clients import OAuthClient
from pyexec_idp.grants.context import Context
from pyexec_idp.grants.flows import ContextualGrant
from pyexec_idp.grants.scopes import Asked
from pyexec_idp.grants.wire import Request

INTERVAL = 5.0
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_HALF = 4


class DeviceGrant(ContextualGrant, DeviceCodeGrant):
    """Tokens for a device that somebody allowed."""

    def query_device_credential(self, device_code: str) -> "HeldDevice":
        """Return the device that holds a code."""
        found = self.context.devices.held(hash_of(device_code))
        if found is None:
            raise InvalidGrantError("Invalid 'device_code' in payload")
        self.request.device = found
        return HeldDevice(found, self.context)

    def query_user_grant(self, _user_code: str) -> tuple[User, bool] | None:
        """Return who decided, and how; None while nobody has."""
        device = self.request.device
        if device is None or (device.grant_id is None and device.denied_at is None):
            return None
        grant = None if device.grant_id is None else self.context.grants.get(device.grant_id)
        user = None if grant is None else self.context.people.active(grant.user_id)
        if grant is None or user is None or grant.revoked_at is not None:
            return User(id="", name=""), False
        self.check_resource(grant.resource)
        self.request.grant = grant
        return user, True

    def should_slow_down(self, credential: "HeldDevice") -> bool:
        """Tell whether it asks more often than it was told."""
        device, now = credential.device, self.context.now()
        hasty = device.polled_at is not None and now - device.polled_at < device.interval
        self.context.devices.polled(device, now, device.interval + (INTERVAL if hasty else 0))
        return hasty

    def generate_token(self, *, include_refresh_token: bool = True, **_given: Any) -> dict[str, Any]:
        """Return the tokens."""
        grant = self.request.grant
        if grant is None:
            raise InvalidGrantError
        return self.tokens(grant, grant.scopes, new_secret() if include_refresh_token else None)

    def save_token(self, token: dict[str, Any]) -> None:
        """Take the device's code: of two that came at once, one gets tokens."""
        device, grant = self.request.device, self.request.grant
        if device is None or grant is None or not self.context.devices.take(device):
            raise InvalidGrantError("Invalid 'device_code' in payload")
        if "refresh_token" in token:
            expires_at = self.context.now() + self.context.lifetimes.refresh_token_idle
            self.context.grants.add_refresh_token(grant.id, hash_of(token["refresh_token"]), expires_at)
        self.context.clients.used(self.client_id())
        self.audit("tokens_given", user_id=grant.user_id)


class HeldDevice:
    """A device as Authlib asks it about itself."""

    def __init__(self, device: Device, context: Context) -> None:
        self.device = device
        self._context = context

    def get_client_id(self) -> str:
        """Return whose it is."""
        return self.device.client_id

    def get_scope(self) -> str:
        """Return what it asked for."""
        return " ".join(self.device.scopes)

    def get_user_code(self) -> str:
        """Return what it shows."""
        return self.device.user_code

    def is_expired(self) -> bool:
        """Tell whether it waited too long."""
        return self.device.expires_at <= self._context.now()


class DeviceEndpoint(DeviceAuthorizationEndpoint):
    """Where a device asks for a code to show. Made for each request, which it remembers."""

    INTERVAL = int(INTERVAL)

    def __init__(self, server: Any, context: Context) -> None:
        super().__init__(server)
        self.context = context
        self.EXPIRES_IN = int(context.lifetimes.device_code)
        self._asked = Asked(scopes=(), resource="")

    def authenticate_client(self, request: Request) -> Any:
        """Check who asks, and for what."""
        client: OAuthClient = super().authenticate_client(request)
        if not client.check_grant_type(DEVICE_CODE_GRANT_TYPE):
            raise UnauthorizedClientError
        payload = request.payload
        self._asked = self.context.register.complete(client.client, payload.scope, payload.datalist["resource"])
        return client

    def generate_device_code(self) -> str:
        """Return what the device holds."""
        return new_secret()

    def generate_user_code(self) -> str:
        """Return what it shows: 8 of 20 letters, looked for with few attempts."""
        return "-".join("".join(secrets.choice(_LETTERS) for _ in range(_HALF)) for _ in range(2))

    def get_verification_uri(self) -> str:
        """Return where people go with it."""
        return f"{self.context.issuer}/device"

    def save_device_credential(self, client_id: str, scope: str | None, data: dict[str, Any]) -> None:
        """Keep it."""
        del scope  # As it was written; what it means was found out before.
        self.context.devices.add(
            Device(
                code_hash=hash_of(data["device_code"]),
                user_code=data["user_code"],
                client_id=client_id,
                scopes=self._asked.scopes,
                resource=self._asked.resource,
                expires_at=self.context.now() + self.context.lifetimes.device_code,
                interval=INTERVAL,
            )
        )


def normal_user_code(typed: str) -> str:
    """Return a code as it is kept, however it was typed."""
    letters = "".join(letter for letter in typed.upper() if letter in _LETTERS)
    return f"{letters[:_HALF]}-{letters[_HALF:]}"


def allow_device(context: Context, device: Device, sign_in: SignIn) -> None:
    """Note that somebody allows a device."""
    now = context.now()
    grant = Grant(
        id=new_id(),
        user_id=sign_in.user.id,
        client_id=device.client_id,
        scopes=device.scopes,
        resource=device.resource,
        auth_time=sign_in.created_at,
        created_at=now,
        used_at=now,
    )
    context.grants.add(grant)
    context.devices.allow(device, grant.id)
    context.audit.note("device_allowed", user_id=sign_in.user.id, client_id=device.client_id)
