"""Opaque positions in the output of an execution."""

import base64
import binascii
from dataclasses import dataclass

from pyexec.domain.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a reader has read: byte offsets into the raw bytes of both streams."""

    stdout: int = 0
    stderr: int = 0

    def encode(self) -> str:
        """Return the text a client keeps and hands back."""
        return base64.urlsafe_b64encode(f"1:{self.stdout}:{self.stderr}".encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> "Cursor":
        """Read a cursor that `encode` made.

        Raises:
            InvalidArgumentError: It is not one of ours.
        """
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("ascii")
            version, stdout, stderr = raw.split(":")
            if version == "1" and stdout.isdecimal() and stderr.isdecimal() and len(raw) < 64:
                return cls(stdout=int(stdout), stderr=int(stderr))
        except (binascii.Error, ValueError):
            pass
        raise InvalidArgumentError(
            f"cursor {text[:40]!r} is not a cursor of this server.",
            hint="Pass the next_cursor of an earlier answer about the same job, or none to read from the start.",
        )
