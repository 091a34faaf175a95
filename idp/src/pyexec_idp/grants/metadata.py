"""What the identity provider says about itself (RFC 8414, OpenID Connect discovery): only what is there."""

from typing import Any

from authlib.oauth2.rfc8628 import DEVICE_CODE_GRANT_TYPE

from pyexec_idp.grants.context import Context
from pyexec_idp.grants.flows import AUTH_METHODS, WITH_SECRET
from pyexec_idp.keys.ring import ALGORITHM


def metadata(context: Context, *, registration: bool) -> dict[str, Any]:
    """Return the document."""
    issuer = context.issuer
    document: dict[str, Any] = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/.well-known/jwks.json",
        "revocation_endpoint": f"{issuer}/revoke",
        "introspection_endpoint": f"{issuer}/introspect",
        "userinfo_endpoint": f"{issuer}/userinfo",
        "device_authorization_endpoint": f"{issuer}/device_authorization",
        "end_session_endpoint": f"{issuer}/logout",
        "scopes_supported": context.register.supported(),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [
            "authorization_code",
            "refresh_token",
            "client_credentials",
            DEVICE_CODE_GRANT_TYPE,
        ],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": AUTH_METHODS,
        "revocation_endpoint_auth_methods_supported": AUTH_METHODS,
        "introspection_endpoint_auth_methods_supported": WITH_SECRET,
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": context.clients.reads_documents,
        "prompt_values_supported": ["none", "login", "consent", "select_account"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
        "claims_supported": [
            *("iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "amr", "at_hash", "azp"),
            *("name", "preferred_username", "email"),
        ],
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "claims_parameter_supported": False,
    }
    if registration:
        document["registration_endpoint"] = f"{issuer}/register"
    return document
