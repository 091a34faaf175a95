"""Cleaning up for one principal: what has ended, and what killed processes left lying about; or only saying what."""

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from anyio.to_thread import run_sync

from pyexec.domain.principals import Principal
from pyexec.executions.retention import HOUR_SECONDS, ORPHAN_SECONDS, Retention, check_age
from pyexec.sandbox.claims import is_taken
from pyexec.scripts.autosaved import AutosavedScripts
from pyexec.storage import packed
from pyexec.storage.output import log_bytes
from pyexec.storage.state_folder import StateFolder

Kind = Literal["jobs", "autosaved_scripts", "temporary_files"]

_HALF_WRITTEN = re.compile(r"\..+\.\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """How many things of a kind were removed, or would be, and how many bytes they took."""

    kind: Kind
    count: int
    size: int


class Cleanup:
    """Removes what is over; never what waits or runs, what somebody else owns, or what somebody gave a name."""

    def __init__(self, folder: StateFolder, retention: Retention, autosaved: AutosavedScripts) -> None:
        self._folder = folder
        self._retention = retention
        self._autosaved = autosaved

    async def clean(self, principal: Principal, *, max_age_hours: float, dry_run: bool) -> tuple[Removal, ...]:
        """Remove ended executions and autosaved sources that are so old, and temporary files that nobody uses.

        With `dry_run` nothing is removed; the answer is the same.

        Raises:
            InvalidArgumentError: `max_age_hours` is not allowed.
        """
        check_age(max_age_hours)
        return await run_sync(partial(self._clean, principal.key, max_age_hours * HOUR_SECONDS, dry_run=dry_run))

    def _clean(self, owner: str, age: float, *, dry_run: bool) -> tuple[Removal, ...]:
        jobs = self._jobs(owner, time.time() - age, dry_run=dry_run)
        temporary = self._temporary_files(owner, dry_run=dry_run)
        count, size = self._autosaved.remove_older_than(owner, age, dry_run=dry_run)
        return (jobs, Removal(kind="autosaved_scripts", count=count, size=size), temporary)

    def _jobs(self, owner: str, before: float, *, dry_run: bool) -> Removal:
        over = self._retention.ended_before(owner, before)
        size = sum(log_bytes(self._folder.execution(execution.id)) for execution in over)
        count = len(over) if dry_run else self._retention.remove(owner, over)
        return Removal(kind="jobs", count=count, size=size)

    def _temporary_files(self, owner: str, *, dry_run: bool) -> Removal:
        before = time.time() - ORPHAN_SECONDS
        folders = list(self._retention.orphans(before, owner))
        files = [*_older(self._parts(owner), before), *_older(_half_written(self._folder.root), before)]
        places = list(_deserted(self._folder.queue(owner)))
        size = sum(map(log_bytes, folders)) + sum(map(_size, files))
        if not dry_run:
            for folder in folders:
                packed.remove(folder)
            for path in (*files, *places):
                with suppress(OSError):  # It went away by itself.
                    path.unlink()
        return Removal(kind="temporary_files", count=len(folders) + len(files) + len(places), size=size)

    def _parts(self, owner: str) -> Iterator[Path]:
        """Yield the room that was kept for what was never written, in the folders of what has ended."""
        for execution in self._retention.ended_before(owner, time.time()):
            yield from self._folder.execution(execution.id).glob("*.part")


def _half_written(root: Path) -> Iterator[Path]:
    """Yield small files whose writer was killed before it gave them their name."""
    with os.scandir(root) as entries:
        for entry in entries:
            if _HALF_WRITTEN.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def _deserted(queue: Path) -> Iterator[Path]:
    """Yield places in line whose keeper is gone."""
    with suppress(FileNotFoundError):
        for name in os.listdir(queue):
            if not name.startswith(".") and not is_taken(queue / name):
                yield queue / name


def _older(paths: Iterable[Path], before: float) -> Iterator[Path]:
    for path in paths:
        with suppress(OSError):
            if path.lstat().st_mtime < before:
                yield path


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
