"""Passwords: argon2id, and bcrypt for those that came from elsewhere, which are made anew at the next sign-in.

Parameters are those of RFC 9106's second choice (64 MiB, 3 passes), with one lane, so that two people who sign in at
once on a small machine do not wait for each other's four threads.
"""

import secrets
import threading

from pwdlib import PasswordHash
from pwdlib.exceptions import UnknownHashError
from pwdlib.hashers.argon2 import Argon2Hasher
from pwdlib.hashers.bcrypt import BcryptHasher

from pyexec_idp.domain.errors import InvalidValueError

SHORTEST = 12
LONGEST = 256
MEMORY_KIB = 65536
PASSES = 3
LANES = 1
_AT_ONCE = 4
"""So many at a time: each takes its memory and a core."""


class Passwords:
    """Hashes and checks them. Both take 100 to 250 ms and 64 MiB, on purpose."""

    def __init__(self, *, memory_kib: int = MEMORY_KIB, passes: int = PASSES) -> None:
        argon2 = Argon2Hasher(time_cost=passes, memory_cost=memory_kib, parallelism=LANES)
        self._hasher = PasswordHash((argon2, BcryptHasher()))
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        # Somebody who does not exist takes as long to refuse as somebody who does.
        self._nobody = self._hasher.hash(secrets.token_urlsafe())

    def hash(self, password: str) -> str:
        """Return the hash to keep.

        Raises:
            InvalidValueError: The password is too short or too long.
        """
        if not SHORTEST <= len(password) <= LONGEST:
            raise InvalidValueError(
                f"The password has {len(password)} characters; it must have between {SHORTEST} and {LONGEST}."
            )
        with self._turns:
            return self._hasher.hash(password)

    def check(self, password: str, kept: str | None) -> tuple[bool, str | None]:
        """Tell whether a password is the one that was hashed, and what to keep instead of the hash, if anything.

        With no hash it is never, after the same time.
        """
        if len(password) > LONGEST:
            return False, None
        try:
            with self._turns:
                fits, better = self._hasher.verify_and_update(password, kept or self._nobody)
        except (UnknownHashError, ValueError):
            return False, None
        return (fits, better) if kept is not None else (False, None)
