"""One secret of the whole installation, from which others are derived.

It binds forms to browsers, and makes the successor of a refresh token, the same however often it is asked for.
"""

import base64
import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from pyexec_idp.domain.errors import KeysUnusableError

_BYTES = 32


class Pepper:
    """Derives values that only somebody who holds the secret can derive."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @classmethod
    def ensure(cls, path: Path) -> "Pepper":
        """Read the secret from a file, which is made at the first time.

        Raises:
            KeysUnusableError: It cannot be read, or others could read it.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make(path)
            with open(path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read()
        except OSError as error:
            raise KeysUnusableError(f"The secret {path} cannot be read: {error.strerror}.") from error
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise KeysUnusableError(f"The secret {path} can be read by others.", hint=f"chmod 600 {path}")
        if len(content) != _BYTES:
            raise KeysUnusableError(f"The secret {path} is damaged.", hint="Remove it; everybody signs in again.")
        return cls(content)

    def derive(self, purpose: str, value: str) -> str:
        """Return what belongs to a value for a purpose, fit for URLs."""
        digest = hmac.digest(self._secret, f"{purpose}\0{value}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def fits(self, purpose: str, value: str, given: str) -> bool:
        """Tell whether that is it, in the same time whatever is wrong."""
        return hmac.compare_digest(self.derive(purpose, value).encode(), given.encode())


def _make(path: Path) -> None:
    if path.exists():
        return
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with open(part, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(secrets.token_bytes(_BYTES))
    with suppress(FileExistsError):  # Another process made it meanwhile.
        os.link(part, path)
    part.unlink()
