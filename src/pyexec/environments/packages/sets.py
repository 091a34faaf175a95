"""Sets of packages on disk: in the same kind of store as environments, each a folder of installed files."""

import re
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pyexec.environments.store import EnvironmentStore

FILES = "files"
SCRATCH = ".scratch-"
_SCRATCH_SECONDS = 24 * 3600.0
_PINNED = re.compile(r"==| @ ")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSet:
    """Packages for one kind of sandbox, which has all else they need.

    Attributes:
        digest: Its name; empty where nothing is lacking.
        folder: Where its files lie, to be read only; None where nothing is lacking.
        installed: The versions by the normalised names; a URL in place of a version where one came from there.
        lock: What it was made from: requirements with hashes.
    """

    digest: str = ""
    folder: Path | None = None
    installed: Mapping[str, str] = field(default_factory=dict[str, str])
    lock: str = field(default="", repr=False)

    @property
    def packages(self) -> tuple[str, ...]:
        """What is installed, each as `name==version` or `name @ url`."""
        return tuple(
            f"{name} @ {version}" if "://" in version else f"{name}=={version}"
            for name, version in self.installed.items()
        )


class PackageStore(EnvironmentStore):
    """The folder that sets lie in. Methods block on the disk."""

    def files(self, digest: str) -> Path:
        """Return where the files of a set lie, or will."""
        return self.folder(digest) / FILES

    def is_whole(self, folder: Path) -> bool:
        """See `EnvironmentStore.is_whole`."""
        return (folder / FILES).is_dir()

    def forget_old_resolutions(self, before: float) -> None:
        """See `EnvironmentStore.forget_old_resolutions`; what builds that were cut off have left goes too."""
        super().forget_old_resolutions(before)
        with suppress(OSError):
            for path in self.root.glob(f"{SCRATCH}*"):
                with suppress(OSError):
                    if path.stat().st_mtime < time.time() - _SCRATCH_SECONDS:
                        shutil.rmtree(path, ignore_errors=True)

    def set_of(self, digest: str, packages: Iterable[str]) -> PackageSet:
        """Return the set of that name, which is complete and has these packages."""
        return PackageSet(
            digest=digest,
            folder=self.files(digest),
            installed=versions(packages),
            lock=self.lock_text(digest) or "",
        )


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions, or URLs, of packages given as `name==version` or `name @ url`, by their names."""
    found: dict[str, str] = {}
    for one in packages:
        name, version = _PINNED.split(one, maxsplit=1)
        found[name] = version
    return found
