"""Inline code is kept: each source once, as a file, and beside it what was asked for when it ran.

    autosaved_scripts/.gitignore             *
    autosaved_scripts/3f0c9d2b71aa4e58.py    the source; its name is the beginning of its SHA-256
    autosaved_scripts/3f0c9d2b71aa4e58.json  its latest runs, newest first, and how many there were

Two servers that note a run of the same source at the same moment may note one of the two; its job is there anyhow.
"""

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from anyio.to_thread import run_sync

from pyexec.domain.errors import NotFoundError
from pyexec.domain.limits import MEGABYTE
from pyexec.domain.principals import Principal
from pyexec.scripts.docstrings import LARGEST_PARSED, parse
from pyexec.scripts.names import SUFFIX
from pyexec.storage.plain_files import read_plain, write_plain
from pyexec.storage.state_folder import StateFolder

SIDECAR = ".json"
NAME_DIGITS = 16
RUNS_KEPT = 20
LARGEST_SIDECAR = 8 * MEGABYTE
LARGEST_SOURCE = 64 * MEGABYTE
_LEFT_OVER_SECONDS = 3600.0
_NAME = re.compile(f"[0-9a-f]{{{NAME_DIGITS}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AutosavedScript:
    """Inline code that was kept. Times are seconds since the epoch; `last_job_id` is that of its latest run."""

    name: str
    path: Path
    docstring: str | None
    runs: int
    last_run_at: float
    last_job_id: str | None


class AutosavedScripts:
    """Keeps inline code for its owner, at most `most` sources each (0: keeps none).

    Whoever reads sees what is kept once `catch_up` has returned.
    """

    def __init__(self, folder: StateFolder, most: int, catch_up: Callable[[], None] = lambda: None) -> None:
        self._folder = folder
        self._most = most
        self._catch_up = catch_up
        self._lock = threading.Lock()

    @property
    def keeps_any(self) -> bool:
        """Whether anything is kept at all."""
        return self._most > 0

    def keep(self, owner: str, source: bytes, *runs: Mapping[str, object]) -> None:
        """Keep a source and note runs of it, oldest first: `job_id`, `at` and what else there is to tell; no secrets.

        Blocks on the disk, for about half a millisecond.

        Raises:
            OSError: It cannot be written.
        """
        if self._most == 0 or not source.strip():
            return
        folder = self._folder.autosaved_scripts(owner)
        name = hashlib.sha256(source).hexdigest()[:NAME_DIGITS]
        with self._lock:
            _make_folder(folder)
            if read_plain(folder, f"{name}{SUFFIX}", len(source)) != source:
                write_plain(folder / f"{name}{SUFFIX}", source)
            sidecar = _read_sidecar(folder, name)
            latest = [*reversed(runs), *_runs_in(sidecar)][:RUNS_KEPT]
            path = folder / f"{name}{SIDECAR}"
            # Where a file takes the place of another, ext4 waits for the disk, milliseconds; here nothing would be lost
            # but what is told about a few runs.
            path.unlink(missing_ok=True)
            write_plain(path, _sidecar(_count_in(sidecar) + len(runs), latest))
            now = time.time_ns()  # The file system's own clock is milliseconds coarse: several would be equally old.
            os.utime(path, ns=(now, now), follow_symlinks=False)

    async def entries(self, principal: Principal, limit: int) -> list[AutosavedScript]:
        """Return the latest that were run, newest first."""
        return await run_sync(self._entries, self._folder.autosaved_scripts(principal.key), limit)

    async def source(self, principal: Principal, name: str) -> tuple[Path, str, dict[str, Any]]:
        """Return where one lies, what is in it, and its sidecar.

        Raises:
            NotFoundError: There is none of that name.
        """
        return await run_sync(self._source, self._folder.autosaved_scripts(principal.key), name)

    def remove_older_than(self, owner: str, age_seconds: float, *, dry_run: bool = False) -> tuple[int, int]:
        """Remove what was not run for so long; return how many scripts that is, and their bytes.

        A `dry_run` only counts. Blocks on the disk.
        """
        self._catch_up()
        before = time.time() - age_seconds
        return self._remove(self._folder.autosaved_scripts(owner), before, None, dry_run=dry_run)

    def sweep(self, age_seconds: float) -> int:
        """Remove, for every owner, what was not run for so long and what is too much; return how many scripts."""
        self._catch_up()
        before = time.time() - age_seconds
        folders = self._folder.autosaved_scripts_of_all()
        return sum(self._remove(folder, before, self._most, dry_run=False)[0] for folder in folders)

    def _entries(self, folder: Path, limit: int) -> list[AutosavedScript]:
        self._catch_up()
        newest = sorted(_kept(folder), key=lambda one: one.last_run_at, reverse=True)[:limit]
        return [_described(folder, one, self._sidecar_of(folder, one.name)) for one in newest]

    def _source(self, folder: Path, name: str) -> tuple[Path, str, dict[str, Any]]:
        self._catch_up()
        name = name.removesuffix(SUFFIX)
        source = read_plain(folder, f"{name}{SUFFIX}", LARGEST_SOURCE) if _NAME.fullmatch(name) else None
        if source is None:
            raise NotFoundError(
                f"There is no autosaved script {name[:80]!r}.",
                hint="py_list_scripts(include_autosaved=true) shows those there are; old ones are removed.",
            )
        return folder / f"{name}{SUFFIX}", source.decode("utf-8", "replace"), self._sidecar_of(folder, name)

    def _sidecar_of(self, folder: Path, name: str) -> dict[str, Any]:
        with self._lock:
            return _read_sidecar(folder, name)

    def _remove(self, folder: Path, before: float, most: int | None, *, dry_run: bool) -> tuple[int, int]:
        kept = sorted(_kept(folder), key=lambda one: one.last_run_at, reverse=True)
        doomed = [one for at, one in enumerate(kept) if one.last_run_at < before or (most is not None and at >= most)]
        if not dry_run:
            for one in doomed:
                with self._lock:
                    for suffix in (SUFFIX, SIDECAR):
                        with suppress(OSError):
                            (folder / f"{one.name}{suffix}").unlink()
            _remove_left_over(folder)
        return len(doomed), sum(one.size for one in doomed)


@dataclass(frozen=True, slots=True)
class _Kept:
    """One script and its sidecar: name, bytes, and when the last of them was written."""

    name: str
    size: int
    last_run_at: float


def _kept(folder: Path) -> list[_Kept]:
    found: dict[str, _Kept] = {}
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            name, suffix = os.path.splitext(entry.name)
            if suffix in (SUFFIX, SIDECAR) and _NAME.fullmatch(name):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    other = found.get(name, _Kept(name, 0, 0.0))
                    newest = max(other.last_run_at, status.st_mtime)
                    found[name] = _Kept(name, other.size + status.st_size, newest)
    return list(found.values())


def _described(folder: Path, kept: _Kept, sidecar: Mapping[str, Any]) -> AutosavedScript:
    source = read_plain(folder, f"{kept.name}{SUFFIX}", LARGEST_PARSED)
    runs = _runs_in(sidecar)
    job_id = runs[0].get("job_id") if runs else None
    return AutosavedScript(
        name=kept.name,
        path=folder / f"{kept.name}{SUFFIX}",
        docstring=None if source is None else parse(source).docstring,
        runs=_count_in(sidecar),
        last_run_at=kept.last_run_at,
        last_job_id=job_id if isinstance(job_id, str) else None,
    )


def _read_sidecar(folder: Path, name: str) -> dict[str, Any]:
    content = read_plain(folder, f"{name}{SIDECAR}", LARGEST_SIDECAR)
    try:
        values: object = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", values) if isinstance(values, dict) else {}


def _sidecar(runs_in_all: int, runs: list[Mapping[str, object]]) -> bytes:
    """Return the text of a sidecar, a line for each run; `json` would take several times as long to indent it."""
    lines = ",\n".join(f"  {json.dumps(run)}" for run in runs)
    return f'{{"v": 1, "runs_in_all": {runs_in_all}, "runs": [\n{lines}\n]}}\n'.encode("ascii")


def _runs_in(sidecar: Mapping[str, Any]) -> list[dict[str, Any]]:
    runs: object = sidecar.get("runs")
    listed = cast("list[object]", runs) if isinstance(runs, list) else []
    return [cast("dict[str, Any]", run) for run in listed if isinstance(run, dict)]


def _count_in(sidecar: Mapping[str, Any]) -> int:
    count: object = sidecar.get("runs_in_all")
    return count if isinstance(count, int) and count >= 0 else len(_runs_in(sidecar))


def _make_folder(folder: Path) -> None:
    ignored = folder / ".gitignore"
    if not ignored.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_plain(ignored, b"*\n")


def _remove_left_over(folder: Path) -> None:
    """Remove what a server that was killed while it wrote has left."""
    before = time.time() - _LEFT_OVER_SECONDS
    for part in folder.glob(".*.[0-9]*"):
        with suppress(OSError):
            if part.lstat().st_mtime < before:
                part.unlink()
