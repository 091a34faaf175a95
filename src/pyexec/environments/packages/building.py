"""Putting packages together for a sandbox: resolve, unpack, look at what it is, compile. Nothing of it is run."""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError, PackagesUnavailableError
from pyexec.environments.credentials import masked, restored, stripped
from pyexec.environments.failures import PreparationFailure
from pyexec.environments.installed import installed_in
from pyexec.environments.locked import LockedLine, read_lock
from pyexec.environments.packages.compiling import compile_files
from pyexec.environments.packages.failures import in_one_sentence
from pyexec.environments.packages.files import Extent, RefusedFilesError, tidy, too_large
from pyexec.environments.packages.limiting import Excess, file_size_limited
from pyexec.environments.packages.orders import PackageOrder
from pyexec.environments.packages.placing import lock_of, place, placed_in
from pyexec.environments.packages.sets import SCRATCH, PackageSet, PackageStore, versions
from pyexec.environments.packages.wanted import There, denial, refuse_clash
from pyexec.environments.store import MARKER, Environment, Resolution
from pyexec.environments.tool import Say, ToolError, Uv
from pyexec.environments.uv_settings import install_settings, refused_setting, settings_files
from pyexec.storage.locks import held

_FORMAT = 1
_WHEELS = ("--only-binary", ":all:")
_COMPILE = ("pip", "compile", "--color", "never", "--no-header", "--no-annotate", "--no-universal", "--generate-hashes")
# Links to uv's cache: the same package in many sets, and in many sessions, lies on the disk once.
_INSTALL = ("pip", "install", "--color", "never", "--no-deps", "--no-compile-bytecode", "--link-mode", "hardlink")


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeSet:
    """A set that is ready, and what the reader of a result should know, a sentence each."""

    set: PackageSet
    notes: tuple[str, ...] = field(default=())


class SetBuilder:
    """Puts together what one order asks for, or finds that somebody else has.

    Args:
        order: With a base.
        environ: The variables of this process.
        say: Hears what is going on.
    """

    def __init__(self, order: PackageOrder, environ: Mapping[str, str], say: Say) -> None:
        if order.base is None:
            raise ValueError("packages were ordered for nothing")
        self._order = order
        self._base = order.base
        self._environ = environ
        self._say = say
        self._uv = Uv(order.uv, environ, order.index_url, say)
        self._store = PackageStore(Path(order.root))

    def build(self) -> MadeSet:
        """Return the set, ready, and leased by whom it is for.

        Raises:
            ToolError: It could not be had.
            OSError: The disk would not take it.
        """
        self._store.create()
        into = Path(self._order.into) if self._order.into else None
        if into is None:
            return self._build()
        with held(lock_of(into), self._repeat):
            self._order = replace(self._order, beside=placed_in(into))
            made = self._build()
            if made.set.folder is not None:
                try:
                    place(made.set.folder, into)
                except PackagesUnavailableError as error:
                    raise _failed(error.sentence()) from error
            return made

    @property
    def _there(self) -> There:
        return There(
            preloaded=self._base.packages,
            beside=self._order.beside,
            python_version=self._base.python_version,
        )

    def _build(self) -> MadeSet:
        files = list(settings_files(self._environ, Path(self._order.cwd)))
        refused = refused_setting(files)
        if refused is not None:
            raise _failed(refused)
        try:
            refuse_clash(self._order.requirements, self._there)
        except InvalidArgumentError as error:
            raise _failed(error.sentence()) from error
        with tempfile.TemporaryDirectory(dir=self._store.root, prefix=SCRATCH) as scratch:
            resolution, lock = self._resolved(Path(scratch), files)
            digest = resolution.digest
            with held(self._store.lock_file(digest), self._repeat) as fd:
                environment = self._store.get(digest)
                if environment is None:
                    environment = self._make(digest, lock, fd, Path(scratch))
                self._store.note_lease(digest, self._order.holder, Path(self._order.holder_lock))
        notes = dict.fromkeys([*resolution.notes, *(masked(note) for note in self._uv.warnings)])
        return MadeSet(set=self._store.set_of(digest, environment.packages), notes=tuple(notes))

    # -- resolving -------------------------------------------------------------------------------------------------

    def _resolved(self, scratch: Path, files: "list[Path]") -> tuple[Resolution, str]:
        key = self._order.key(self._environ)
        with held(self._store.request_lock(key), self._repeat):
            known = self._store.resolution(key)
            lock = self._store.lock_text(known.digest) if known is not None else None
            if known is not None and lock is not None and known.is_fresh(self._order.fresh_seconds):
                return known, lock
            lock, from_cache = self._compile(scratch)
            notes = ("The package index could not be reached; the packages are those that uv has in its cache.",)
            resolution = Resolution(
                digest=self._digest(lock, files),
                # What the cache gave is asked for again the next time.
                created_at=0.0 if from_cache else time.time(),
                notes=notes if from_cache else (),
            )
            self._store.keep_resolution(key, resolution, lock)
            return resolution, lock

    def _compile(self, scratch: Path) -> tuple[str, bool]:
        """Return the lock of what is lacking, and whether it came from uv's cache."""
        order = self._order
        started = time.monotonic()
        count = len(order.requirements)
        self._say(f"resolving {count} requirement{'s' if count > 1 else ''}")
        written = scratch / "lock.txt"
        try:
            _output, from_cache = self._uv.run_or_offline(
                *(*_COMPILE, *_WHEELS, "--python", self._base.python, "--python-version", self._base.python_version),
                *("--output-file", str(written), "-"),
                stdin="".join(f"{one}\n" for one in order.requirements),
                constraints=self._there.packages,
                variables=self._variables(scratch),
            )
        except ToolError as error:
            raise ToolError(in_one_sentence(error.failure, order.requirements, self._there)) from error
        text = stripped(written.read_text("utf-8") if written.exists() else "")
        lacking = [line for line in read_lock(text) if line.applies(self._base.python_version) and self._lacks(line)]
        for line in lacking:
            why = denial(line.distribution or "", order.settings)
            if why:
                raise _failed(f"{', '.join(map(masked, order.requirements))} cannot be had: {why}")
        if lacking:
            count = len(lacking)
            self._say(f"resolved {count} package{'s' if count > 1 else ''} in {time.monotonic() - started:.1f} s")
        return "".join(f"{line.full}\n" for line in lacking), from_cache

    def _lacks(self, line: LockedLine) -> bool:
        return line.distribution not in versions(self._there.packages)

    def _digest(self, lock: str, files: "list[Path]") -> str:
        content = [
            _FORMAT,
            self._order.owner,
            asdict(self._base),
            sorted(lock.splitlines()),
            install_settings(files),
            [self._order.settings.size, self._order.settings.files],
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    def _variables(self, scratch: Path) -> "dict[str, str]":
        """Return variables by which uv neither learns nor tells what only one caller may know."""
        return {"UV_CACHE_DIR": str(scratch / "cache")} if self._order.cache_apart else {}

    # -- making ----------------------------------------------------------------------------------------------------

    def _make(self, digest: str, lock: str, fd: int, scratch: Path) -> Environment:
        folder = self._store.folder(digest)

        def say(text: str) -> None:
            os.pwrite(fd, f"{text}\n".encode(), 0)
            self._say(text)

        self._remove(folder)  # What one that was cut off may have left.
        # uv holds the lock too: killed or not, nobody else works here as long as it does.
        self._uv.held.append(fd)
        try:
            root = self._store.files(digest)
            root.mkdir(parents=True)
            lines = read_lock(lock)
            if lines:
                self._install(root, lines, scratch, say)
                tidy(root, self._order.settings)
                say("compiling to bytecode")
                compile_files(self._base.python, root)
            extent = tidy(root, self._order.settings)
            environment = self._made(digest, root, lines, extent)
            self._store.mark_ready(environment, lock)
        except RefusedFilesError as error:
            self._remove(folder)
            raise _failed(str(error)) from error
        except BaseException:
            self._remove(folder)
            raise
        finally:
            self._uv.held.clear()
        say("ready")
        return environment

    def _install(self, root: Path, lines: "list[LockedLine]", scratch: Path, say: Say) -> None:
        settings = self._order.settings
        say(f"installing {len(lines)} package{'s' if len(lines) > 1 else ''}")
        excess = Excess(settings.size)
        told = 0

        def look() -> None:
            nonlocal told
            excess.look()
            installed = sum(1 for _ in root.glob("*.dist-info"))
            if told < installed < len(lines):
                told = installed
                say(f"installing {installed} of {len(lines)}")

        try:
            with file_size_limited(settings.size):
                self._uv.run_or_offline(
                    *(*_INSTALL, *_WHEELS, "--python", self._base.python, "--target", str(root)),
                    *(*(("--require-hashes",) if _all_hashed(lines) else ()), "--requirements", "-"),
                    stdin=restored("".join(f"{line.full}\n" for line in lines), self._order.requirements),
                    variables=self._variables(scratch),
                    on_tick=look,
                    on_start=excess.watch,
                )
        except ToolError as error:
            if excess.was_too_large(error.failure.message):
                raise RefusedFilesError(too_large(settings)) from error
            raise

    def _made(self, digest: str, root: Path, lines: "list[LockedLine]", extent: Extent) -> Environment:
        installed = sorted(installed_in(root), key=lambda one: one.name)
        missing = {line.distribution for line in lines} - {one.name for one in installed} - {None}
        if missing:
            raise _failed(f"uv did not install {', '.join(sorted(map(str, missing)))}, and did not say why.")
        for one in installed:
            one.forget_credentials()
        return Environment(
            digest=digest,
            python=Path(self._base.python),
            python_version=self._base.python_version,
            packages=tuple(one.shown() for one in installed),
            size_bytes=extent.size,
            created_at=time.time(),
        )

    def _remove(self, folder: Path) -> None:
        (folder / MARKER).unlink(missing_ok=True)  # First: what is half removed must not be taken for whole.
        shutil.rmtree(folder, ignore_errors=True)

    def _repeat(self, line: bytes) -> None:
        """Say what another build of the same says."""
        self._say(line.decode("utf-8", "replace") or "waiting for another build of the same packages")


def _all_hashed(lines: "list[LockedLine]") -> bool:
    """Tell whether each package can be told by what it holds: a wheel on this machine may have no hash in a lock."""
    return all(" --hash=" in line.full for line in lines)


def _failed(message: str) -> ToolError:
    return ToolError(PreparationFailure(kind="other", message=message, detail=message))
