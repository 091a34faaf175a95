"""What the identity provider itself refuses or fails at; each has a stable code."""

from typing import ClassVar


class IdentityError(Exception):
    """A refusal or failure with a code, a sentence for the reader, and mostly a hint on what to do next."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidSettingError(IdentityError):
    """A setting has a value that is not allowed."""

    code = "invalid_setting"


class InvalidValueError(IdentityError):
    """A value given on the command line or in a form is not allowed."""

    code = "invalid_value"


class InvalidRedirectError(IdentityError):
    """A redirect URI is of a kind that is not allowed."""

    code = "invalid_redirect"


class UnknownUserError(IdentityError):
    """There is no user of that name."""

    code = "unknown_user"


class UserExistsError(IdentityError):
    """There is a user of that name already."""

    code = "user_exists"


class UnknownClientError(IdentityError):
    """There is no client of that id."""

    code = "unknown_client"


class UnknownGrantError(IdentityError):
    """A user has no such grant, or it has ended."""

    code = "unknown_grant"


class UnknownResourceError(IdentityError):
    """There is no resource of that URL."""

    code = "unknown_resource"


class TooManyError(IdentityError):
    """Too many of these came lately, from one address or altogether; later is fine again."""

    code = "too_many"


class WrongTokenError(IdentityError):
    """A token is none of ours, has expired, or was revoked. Never says which."""

    code = "wrong_token"


class KeysUnusableError(IdentityError):
    """The signing keys cannot be read, or others could read them."""

    code = "keys_unusable"


class StateUnusableError(IdentityError):
    """The folder or the database of the identity provider cannot be used."""

    code = "state_unusable"
