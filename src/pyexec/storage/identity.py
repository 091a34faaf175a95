"""The name of a state folder, by which a database outside of it knows whose records it has."""

import os
import secrets
from pathlib import Path

from pyexec.domain.errors import StateUnusableError

_NAME = "identity"
_CHARACTERS = 32


def identity_of(root: Path) -> str:
    """Return a state folder's name; made at the first use, and the same ever after, wherever the folder is moved to.

    Raises:
        StateUnusableError: It cannot be read or made.
    """
    path = root / _NAME
    try:
        if not path.exists():
            _make(path)
        found = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StateUnusableError(f"The file {path} cannot be read or made: {error}.") from error
    if len(found) != _CHARACTERS or not found.isalnum():
        raise StateUnusableError(
            f"The file {path} does not hold a name of {_CHARACTERS} letters and digits.",
            hint="Put it back from a backup: by it the database knows that its records are of this folder.",
        )
    return found


def has_identity(root: Path) -> bool:
    """Tell whether a state folder has one yet."""
    return (root / _NAME).exists()


def _make(path: Path) -> None:
    """Make it whole or not at all; of several that do so at once, one does."""
    own = path.with_name(f"{_NAME}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with open(own, "x", encoding="ascii", opener=_private) as file:
            file.write(secrets.token_hex(_CHARACTERS // 2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(own, path)
        except FileExistsError:
            return
    finally:
        own.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
