"""Random values that are authority by themselves, and what is kept of them: their hash, never they themselves.

They carry 256 random bits, so a plain hash is enough: nobody can try them all, as one could with passwords.
"""

import hashlib
import secrets
import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since the epoch."""

wall_clock: Clock = time.time


def new_secret() -> str:
    """Return a value that nobody can guess, fit for URLs."""
    return secrets.token_urlsafe(32)


def new_id() -> str:
    """Return an id of 128 random bits."""
    return secrets.token_hex(16)


def hash_of(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
