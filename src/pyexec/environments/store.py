"""Environments on disk: found by what was asked for, leased by who uses them, evicted when nobody does.

requests/<key>.json     what a request resolved to, and when
<digest>/               an environment; it counts once environment.json is in it
<digest>.lock           held by who makes or evicts it, shared for a moment by who leases it
leases/<digest>/<id>    who uses it: the path of the lock that says so
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyexec.domain.errors import DiskFullError
from pyexec.environments.local import fingerprint_of
from pyexec.sandbox.claims import is_at_work
from pyexec.storage.json_files import read_json, write_json, write_text
from pyexec.storage.locks import try_hold

FORMAT = 1
MARKER = "environment.json"
LOCK_TEXT = "requirements.lock"
GRACE_SECONDS = 120.0
COMING_SECONDS = 10.0
_DIGEST_LENGTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a request has been resolved to. Times are seconds since the epoch.

    `put_off_until` is there when asking the index again failed: the resolution counts until then, old as it is.
    `local` are the local packages it came to, each with its fingerprint: when one changes it no longer counts.
    """

    digest: str
    created_at: float
    put_off_until: float = 0.0
    notes: tuple[str, ...] = ()
    local: tuple[tuple[str, str], ...] = ()

    def is_fresh(self, fresh_seconds: float) -> bool:
        """Tell whether it counts, when it may be so old."""
        now = time.time()
        young = now - self.created_at < fresh_seconds or now < self.put_off_until
        return young and self.local_unchanged()

    def local_unchanged(self) -> bool:
        """Tell whether no local package has changed since."""
        return all(fingerprint_of(Path(path)) == mark for path, mark in self.local)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An environment that is ready.

    Attributes:
        digest: Its name: the same packages on the same Python have the same one.
        python: Its interpreter.
        python_version: The version of that, such as `3.13.2`.
        packages: What is installed, each as `name==version` or `name @ url`.
        size_bytes: How much disk it takes.
        created_at: When it was made, in seconds since the epoch.
        notes: What the reader of a result should know, a sentence each.
    """

    digest: str
    python: Path
    python_version: str
    packages: tuple[str, ...]
    size_bytes: int = 0
    created_at: float = 0.0
    notes: tuple[str, ...] = ()


class EnvironmentStore:
    """The folder that environments lie in. Methods block on the disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self) -> None:
        """Make the folder and the places in it."""
        for folder in (self.root, self.root / "requests", self.root / "leases"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def folder(self, digest: str) -> Path:
        """Return where an environment lies, or will."""
        return self.root / digest

    def lock_file(self, digest: str) -> Path:
        """Return the file to lock while an environment is made or removed."""
        return self.root / f"{digest}.lock"

    def request_lock(self, key: str) -> Path:
        """Return the file to lock while a request is resolved."""
        return self.root / "requests" / f"{key}.lock"

    # -- what a request resolved to --------------------------------------------------------------------------------

    def resolution(self, key: str) -> Resolution | None:
        """Return what a request resolved to the last time."""
        match _of_this_format(self.root / "requests" / f"{key}.json"):
            case {
                "digest": str(digest),
                "created_at": int() | float() as created_at,
                "put_off_until": int() | float() as until,
                "notes": [*notes],
                "local": [*local],
            } if is_digest(digest):
                return Resolution(
                    digest=digest,
                    created_at=created_at,
                    put_off_until=until,
                    notes=tuple(map(str, notes)),
                    local=tuple((str(path), str(mark)) for path, mark in local),
                )
            case _:
                return None

    def keep_resolution(self, key: str, resolution: Resolution, lock: str) -> None:
        """Remember what a request resolved to, and the lock itself."""
        text = self.root / "requests" / f"{resolution.digest}.lock-text"
        write_text(text, lock)
        write_json(self.root / "requests" / f"{key}.json", {"format": FORMAT, **asdict(resolution)})

    def lock_text(self, digest: str) -> str | None:
        """Return the lock an environment is made from, while anything remembers it."""
        for path in (self.folder(digest) / LOCK_TEXT, self.root / "requests" / f"{digest}.lock-text"):
            with suppress(OSError):
                return path.read_text("utf-8")
        return None

    # -- environments ----------------------------------------------------------------------------------------------

    def get(self, digest: str) -> Environment | None:
        """Return an environment that is ready and whose interpreter is still there."""
        folder = self.folder(digest)
        python = folder / "bin" / "python"
        if not self.is_whole(folder):
            return None
        match _of_this_format(folder / MARKER):
            case {
                "python_version": str(version),
                "packages": [*packages],
                "size_bytes": int(size),
                "created_at": int() | float() as created_at,
            }:
                return Environment(
                    digest=digest,
                    python=python,
                    python_version=version,
                    packages=tuple(map(str, packages)),
                    size_bytes=size,
                    created_at=created_at,
                )
            case _:
                return None

    def is_whole(self, folder: Path) -> bool:
        """Tell whether what one that was complete is made of is still there."""
        # The interpreter it was made with may have been removed since.
        return (folder / "bin" / "python").exists()

    def mark_ready(self, environment: Environment, lock: str) -> None:
        """Say that an environment is complete; from now on it is found."""
        folder = self.folder(environment.digest)
        write_text(folder / LOCK_TEXT, lock)
        write_json(
            folder / MARKER,
            {
                "format": FORMAT,
                "python_version": environment.python_version,
                "packages": list(environment.packages),
                "size_bytes": environment.size_bytes,
                "created_at": environment.created_at,
            },
        )

    def digests(self) -> list[str]:
        """Return the names of the folders there are, complete or not."""
        try:
            return [name for name in os.listdir(self.root) if is_digest(name)]
        except FileNotFoundError:
            return []

    # -- leases ----------------------------------------------------------------------------------------------------

    def lease(self, digest: str, holder: str, holder_lock: Path) -> Environment | None:
        """Take an environment into use: it is not evicted while somebody holds the lock of that file.

        Returns None when it is not ready, or just being made or evicted. A lease may be taken a moment before its
        lock: at first it counts in any case.
        """
        try:
            with try_hold(self.lock_file(digest), shared=True) as free:
                environment = self.get(digest) if free else None
                if environment is not None:
                    self.note_lease(digest, holder, holder_lock)
        except OSError as error:
            raise DiskFullError(f"No lease could be written in {self.root}: {error.strerror}.") from error
        return environment

    def note_lease(self, digest: str, holder: str, holder_lock: Path) -> None:
        """Write a lease; for who holds the environment's lock already."""
        leases = self.root / "leases" / digest
        leases.mkdir(mode=0o700, parents=True, exist_ok=True)
        (leases / holder).write_text(str(holder_lock), "utf-8")
        os.utime(leases)

    def holders(self, digest: str) -> list[str]:
        """Return who uses an environment now."""
        return [name for name, lock, age in self._leases(digest) if is_at_work(lock) or _is_coming(lock, age)]

    def last_used(self, digest: str) -> float:
        """Return when an environment was last taken into use, in seconds since the epoch; 0 for never."""
        try:
            return (self.root / "leases" / digest).stat().st_mtime
        except OSError:
            return 0.0

    def _leases(self, digest: str) -> Iterator[tuple[str, Path, float]]:
        folder = self.root / "leases" / digest
        now = time.time()
        with suppress(OSError):
            for entry in os.scandir(folder):
                with suppress(OSError):
                    age = now - entry.stat().st_mtime
                    lock = Path(Path(entry.path).read_text("utf-8"))
                    yield entry.name, lock, age

    # -- removing --------------------------------------------------------------------------------------------------

    def evict(self, digest: str, *, at_once: bool = False) -> bool:
        """Remove an environment, complete or not, that nobody makes or uses; tell whether it is gone.

        One that was leased a moment ago counts as used, unless it has to go `at_once`.
        """
        lock = self.lock_file(digest)
        with try_hold(lock) as free:
            fresh = not at_once and time.time() - self.last_used(digest) < GRACE_SECONDS
            if not free or fresh or self.holders(digest):
                return False
            folder = self.folder(digest)
            (folder / MARKER).unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(self.root / "leases" / digest, ignore_errors=True)
            lock.unlink(missing_ok=True)
        return not folder.exists()

    def forget_dead_leases(self, digest: str) -> None:
        """Remove the leases of those who have ended."""
        for name, lock, age in list(self._leases(digest)):
            if age >= GRACE_SECONDS and not is_at_work(lock):
                used = self.last_used(digest)
                (self.root / "leases" / digest / name).unlink(missing_ok=True)
                with suppress(OSError):  # Removing one is no use of it.
                    os.utime(self.root / "leases" / digest, (used, used))

    def forget_old_resolutions(self, before: float) -> None:
        """Remove what was resolved before that time, and locks that no environment or name refers to."""
        with suppress(OSError):
            for entry in os.scandir(self.root / "requests"):
                with suppress(OSError):
                    if entry.stat().st_mtime >= before:
                        continue
                    if not entry.name.endswith(".lock"):
                        Path(entry.path).unlink()
                        continue
                    with try_hold(Path(entry.path)) as free:
                        if free:
                            Path(entry.path).unlink()


def _of_this_format(file: Path) -> dict[str, Any]:
    values = read_json(file)
    return values if values.get("format") == FORMAT else {}


def _is_coming(lock: Path, age: float) -> bool:
    """Tell whether a lease was taken just now, by somebody whose lock is not made yet."""
    return age < COMING_SECONDS and not lock.exists()


def site_packages(folder: Path) -> Path:
    """Return where the packages of an environment lie."""
    (site,) = folder.glob("lib/python*/site-packages")
    return site


def is_digest(name: str) -> bool:
    """Tell whether this is the name of an environment."""
    return len(name) == _DIGEST_LENGTH and all(character in "0123456789abcdef" for character in name)
