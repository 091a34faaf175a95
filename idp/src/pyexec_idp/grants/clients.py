"""Clients as Authlib asks them about themselves."""

import hmac

from authlib.oauth2.rfc6749 import ClientMixin

from pyexec_idp.domain.secrets import hash_of
from pyexec_idp.domain.urls import redirect_matches
from pyexec_idp.domain.values import Client


class OAuthClient(ClientMixin):
    """A client that a request came from."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def get_client_id(self) -> str:
        """Return its id."""
        return self.client.id

    def get_default_redirect_uri(self) -> str | None:
        """Return its redirect URI, where it has one only."""
        return self.client.redirect_uris[0] if len(self.client.redirect_uris) == 1 else None

    def get_allowed_scope(self, scope: str | None) -> str:
        """Return the scopes as they are: the register decides."""
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Tell whether a code may go there."""
        return any(redirect_matches(one, redirect_uri) for one in self.client.redirect_uris)

    def check_client_secret(self, client_secret: str) -> bool:
        """Tell whether that is its secret."""
        kept = self.client.secret_hash
        return kept is not None and hmac.compare_digest(kept, hash_of(client_secret))

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Tell whether it says who it is that way. One with a secret has the choice where to put it."""
        del endpoint
        if self.client.auth_method == "none":
            return method == "none"
        return method in {"client_secret_basic", "client_secret_post"}

    def check_response_type(self, response_type: str) -> bool:
        """Tell whether it may ask for that."""
        return response_type == "code" and self.check_grant_type("authorization_code")

    def check_grant_type(self, grant_type: str) -> bool:
        """Tell whether it may get tokens that way."""
        return grant_type in self.client.grant_types
