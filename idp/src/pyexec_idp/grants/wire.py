"""What Authlib reads and writes, made of our own requests and answers."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from authlib.oauth2 import OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import OAuth2Payload

from pyexec_idp.domain.calls import Call
from pyexec_idp.domain.values import Code, Device, Grant, RefreshToken, SignIn

Pairs = tuple[tuple[str, str], ...]


@dataclass(slots=True, kw_only=True)
class Answer:
    """An answer to be sent: a redirect has a `location`, everything else a JSON body."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    location: str | None = None


class InvalidTargetError(OAuth2Error):
    """The resource that was named is none of ours, or not the one that was allowed (RFC 8707)."""

    error = "invalid_target"


class Parameters(OAuth2Payload):
    """The parameters of a request."""

    def __init__(self, pairs: Pairs) -> None:
        self._lists: defaultdict[str, list[str]] = defaultdict(list)
        for key, value in pairs:
            if value:  # Without a value is as if it were not there (RFC 6749 section 3.1).
                self._lists[key].append(value)
        self._data = {key: values[0] for key, values in self._lists.items()}

    @property
    def data(self) -> dict[str, str]:
        """Return the first value of each."""
        return self._data

    @property
    def datalist(self) -> defaultdict[str, list[str]]:
        """Return all values of each."""
        return self._lists


class Request(OAuth2Request):
    """A request on its way through a grant, with what the grant finds out about it."""

    def __init__(self, method: str, pairs: Pairs, headers: Mapping[str, str] | None = None) -> None:
        # Authlib wants to see that nobody uses plain http. Whether we do was settled with the issuer's URL.
        super().__init__(method, "https://issuer", headers=dict(headers or {}))
        self.payload = Parameters(pairs)
        self.sign_in: SignIn | None = None
        self.resource: str = ""
        self.scopes: tuple[str, ...] = ()
        self.grant: Grant | None = None
        self.code: Code | None = None
        self.token: RefreshToken | None = None
        self.presented: str = ""
        self.device: Device | None = None

    @property
    def args(self) -> dict[str, str]:
        """Return the parameters."""
        return self.payload.data

    @property
    def form(self) -> dict[str, str]:
        """Return the parameters."""
        return self.payload.data


def from_form(call: Call) -> Request:
    """Return the request of a form that was posted."""
    headers = {"Authorization": call.headers["authorization"]} if "authorization" in call.headers else {}
    return Request(call.method, call.form, headers)


def to_answer(status: int, body: Any, headers: list[tuple[str, str]]) -> Answer:
    """Return the answer that Authlib means."""
    kept = dict(headers)
    location = kept.pop("Location", None)
    kept.pop("Content-Type", None)
    if isinstance(body, str):
        body = json.loads(body) if body else {}
    return Answer(status=status, body=body, headers=kept, location=location)
