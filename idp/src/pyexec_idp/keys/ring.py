"""The signing keys: ES256, one file each, readable by their owner only.

A new key is published at once and signs a little later, so that verifiers that keep the old set for a while have seen
it before its first signature; a key that no longer signs stays published until the last token it signed has expired.
A server looks at the folder again whenever it has changed: `pyexec-idp keys rotate` needs no restart.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from pyexec_idp.domain.errors import KeysUnusableError

ALGORITHM = "ES256"
_CURVE = "P-256"
_SUFFIX = ".json"
_LOCK = ".lock"
_Look = tuple[int, tuple[tuple[str, int], ...]]
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A private key. Times are seconds since the epoch: when it was made, begins to sign, and is published no more."""

    key: ECKey
    created_at: float
    signs_from: float
    published_until: float | None = None

    @property
    def kid(self) -> str:
        """The key's id: its RFC 7638 thumbprint."""
        return self.key.thumbprint()

    def is_published(self, now: float) -> bool:
        """Tell whether verifiers are told about it."""
        return self.published_until is None or now < self.published_until


class KeyRing:
    """The keys in a folder.

    Args:
        folder: Where they lie; made with the first key.
        seen_within: For how long a verifier may keep the published set: a new key waits that long before it signs.
        valid_for: How long what was signed is valid, with some room for clocks that differ.
        now: The clock.
    """

    def __init__(
        self, folder: Path, *, seen_within: float, valid_for: float, now: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._seen_within = seen_within
        self._valid_for = valid_for
        self._now = now
        self._seen: tuple[_Look, tuple[SigningKey, ...]] | None = None

    def signing(self) -> ECKey:
        """Return the key to sign with now.

        Raises:
            KeysUnusableError: There is none, or others could read it.
        """
        now = self._now()
        able = [one for one in self.all() if one.signs_from <= now and one.is_published(now)]
        if not able:
            raise KeysUnusableError(
                f"There is no key to sign with in {self._folder}.", hint="`pyexec-idp keys rotate --now` makes one."
            )
        return max(able, key=lambda one: one.signs_from).key

    def published(self) -> dict[str, Any]:
        """Return the set of public keys (RFC 7517), newest first."""
        now = self._now()
        return {"keys": [_public(one) for one in self.all() if one.is_published(now)]}

    def all(self) -> tuple[SigningKey, ...]:
        """Return every key there is, newest first."""
        try:
            look = _look(self._folder)
        except FileNotFoundError:
            return ()
        seen = self._seen
        if seen is None or seen[0] != look:
            seen = self._seen = (look, self._read())
        return seen[1]

    def ensure(self) -> None:
        """Make the first key, where there is none."""
        with self._alone():
            if not self._read():
                self._write(self._new(signs_from=self._now()))

    def rotate(self, *, at_once: bool = False) -> SigningKey:
        """Make a new key and set an end to the others; return the new one.

        `at_once` is for a key that others have seen: the new one signs from now on, and the others are withdrawn with
        everything they signed.
        """
        with self._alone():
            now = self._now()
            new = self._new(signs_from=now if at_once else now + self._seen_within)
            for old in self._read():
                end = now if at_once else new.signs_from + self._valid_for
                if old.published_until is None or old.published_until > end:
                    self._write(replace(old, published_until=end))
            self._write(new)
            self._remove_expired(now)
            return new

    # -- files -----------------------------------------------------------------------------------------------------

    def _new(self, signs_from: float) -> SigningKey:
        return SigningKey(key=ECKey.generate_key(_CURVE), created_at=self._now(), signs_from=signs_from)

    def _read(self) -> tuple[SigningKey, ...]:
        files = sorted(self._folder.glob(f"*{_SUFFIX}"))
        return tuple(sorted((_load(path) for path in files), key=lambda one: one.created_at, reverse=True))

    def _write(self, one: SigningKey) -> None:
        path = self._folder / f"{one.kid}{_SUFFIX}"
        part = self._folder / f".{one.kid}.{os.getpid()}"
        values = {
            "jwk": one.key.as_dict(private=True),
            "created_at": one.created_at,
            "signs_from": one.signs_from,
            "published_until": one.published_until,
        }
        try:
            with open(part, "w", encoding="utf-8", opener=_private) as file:
                json.dump(values, file)
            part.replace(path)  # Changes the folder, which running servers look at.
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _remove_expired(self, now: float) -> None:
        for one in self._read():
            if not one.is_published(now):
                with suppress(FileNotFoundError):
                    (self._folder / f"{one.kid}{_SUFFIX}").unlink()

    @contextmanager
    def _alone(self) -> Generator[None]:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise KeysUnusableError(f"The keys in {self._folder} cannot be changed: {error.strerror}.") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def _look(folder: Path) -> _Look:
    """Return what is different once a key was written: the time alone is too coarse for two changes in a row."""
    with os.scandir(folder) as entries:
        files = sorted((entry.name, entry.inode()) for entry in entries)
    return folder.stat().st_mtime_ns, tuple(files)


def _load(path: Path) -> SigningKey:
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read()
    except OSError as error:
        raise KeysUnusableError(f"The key {path} cannot be read: {error.strerror}.") from error
    if mode & _OTHERS:
        raise KeysUnusableError(
            f"The key {path} can be read by others (mode {stat.S_IMODE(mode):04o}; it must be 0600).",
            hint=f"If nobody else has read it: chmod 600 {path}; else `pyexec-idp keys rotate --now`.",
        )
    try:
        values = cast("Mapping[str, Any]", json.loads(content))
        return SigningKey(
            key=ECKey.import_key(values["jwk"]),
            created_at=float(values["created_at"]),
            signs_from=float(values["signs_from"]),
            published_until=None if values["published_until"] is None else float(values["published_until"]),
        )
    except (ValueError, KeyError, TypeError, JoseError) as error:
        raise KeysUnusableError(
            f"The file {path} holds no key.", hint="Move it away; `pyexec-idp keys rotate` makes a new one."
        ) from error


def _public(one: SigningKey) -> dict[str, Any]:
    return {**one.key.as_dict(private=False), "kid": one.kid, "use": "sig", "alg": ALGORITHM}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
