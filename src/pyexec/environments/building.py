"""Making an environment: resolve, make the folder, install, compile; each once, whoever asks at the same time."""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pyexec.environments.credentials import masked, restored, stripped, variables_for_git, without_those_for_git
from pyexec.environments.editable import make_editable, say_where_from
from pyexec.environments.failures import PreparationFailure
from pyexec.environments.fingerprints import fingerprint
from pyexec.environments.installed import Installed, installed_in
from pyexec.environments.local import fingerprint_of, local_path, metadata_fingerprint, project_name, source_root
from pyexec.environments.locked import LockedLine, read_lock, without_project
from pyexec.environments.names import NamedEnvironment, NameRegister
from pyexec.environments.orders import BuildOrder
from pyexec.environments.store import MARKER, Environment, EnvironmentStore, Resolution, site_packages
from pyexec.environments.tool import Say, ToolError, Uv
from pyexec.environments.uv import is_true
from pyexec.environments.uv_settings import install_settings, refused_setting, settings_files
from pyexec.storage.locks import held

RETRY_SECONDS = 300.0
_FORMAT = 1
_SHOW_PYTHON = "import sys; print(sys.executable); print('%d.%d.%d' % sys.version_info[:3])"
_COMPILE = ("pip", "compile", "--color", "never", "--no-header", "--no-annotate", "--no-universal", "--generate-hashes")
_INSTALL = ("pip", "sync", "--color", "never", "--compile-bytecode")
_UNREACHABLE = "The package index could not be reached"
_FROM_CACHE = f"{_UNREACHABLE}; the packages are those that uv has in its cache."
# Variables by which the same versions come out as something else.
_INSTALLS_OTHERWISE = ("UV_NO_BINARY", "UV_NO_BUILD", "UV_CONFIG_SETTING", "CC", "CFLAGS", "CXX", "LDFLAGS")
_PATHS_FILE = "_pyexec_project.pth"


class Builder:
    """Makes what one order asks for, or finds that somebody else has."""

    def __init__(self, order: BuildOrder, environ: Mapping[str, str], say: Say) -> None:
        # git gets the credentials for its repositories by variables, uv those for all else within the requirements.
        self._requirements = tuple(without_those_for_git(one) for one in order.requirements)
        git = variables_for_git(order.requirements, environ)
        self._order = order
        self._environ = environ
        self._say = say
        self._uv = Uv(order.uv, {**environ, **git}, order.index_url, say)
        self._store = EnvironmentStore(Path(order.root))
        self._python = order.python
        self._python_version = order.python_version or ""

    def build(self) -> Environment:
        """Return the environment, ready, and leased by whom it is for.

        Raises:
            ToolError: uv could not make it.
            OSError: The disk would not take it.
        """
        self._store.create()
        refused = refused_setting(self._settings_files())
        if refused is not None:
            raise ToolError(PreparationFailure(kind="other", message=refused, detail=refused))
        if not self._python_version:
            self._fetch_python()
        resolution, lock = self._resolved()
        digest = resolution.digest
        with held(self._store.lock_file(digest), self._repeat) as fd:
            environment = self._store.get(digest)
            if environment is None:
                environment = self._make(digest, lock, fd)
            self._store.note_lease(digest, self._order.holder, Path(self._order.holder_lock))
        if self._order.name is not None:
            self._give_name(self._order.name, environment, lock)
        notes = dict.fromkeys([*resolution.notes, *(masked(note) for note in self._uv.warnings)])
        return replace(environment, notes=tuple(notes))

    # -- resolving -------------------------------------------------------------------------------------------------

    def _fetch_python(self) -> None:
        self._say(f"fetching Python {self._python}")
        try:
            shown = self._uv.run(
                *("run", "--no-project", "--no-config", "--no-env-file", "--color", "never", "--python", self._python),
                *("--", "python", "-I", "-S", "-c", _SHOW_PYTHON),
            )
        except ToolError as error:
            here = ", ".join(self._order.python_here) or "none"
            why = error.failure.message
            message = (
                f"Python {self._python} is not on this machine (there are {here}), and uv could not fetch it: {why}"
            )
            raise ToolError(replace(error.failure, kind="interpreter", message=message)) from error
        self._python, self._python_version = shown.split("\n")[:2]

    def _resolved(self) -> tuple[Resolution, str]:
        order = self._order
        if order.digest is not None and order.lock is not None:
            return Resolution(digest=order.digest, created_at=time.time()), order.lock
        if order.key is None:
            return self._resolve(or_offline=True)
        with held(self._store.request_lock(order.key), self._repeat):
            known = self._store.resolution(order.key)
            lock = self._store.lock_text(known.digest) if known is not None else None
            if known is not None and lock is not None and known.is_fresh(order.fresh_seconds):
                return known, lock
            # The last resort while the index is away, unless a local package has changed since.
            usable = known is not None and lock is not None and known.local_unchanged()
            try:
                resolution, new_lock = self._resolve(or_offline=not usable)
            except ToolError as error:
                if known is None or lock is None or not usable or error.failure.kind != "network":
                    raise
                known = self._still(known)
                self._store.keep_resolution(order.key, known, lock)
                return known, lock
            self._store.keep_resolution(order.key, resolution, new_lock)
            return resolution, new_lock

    def _still(self, known: Resolution) -> Resolution:
        """Return an old resolution that counts a little longer, since asking again at once would fail again."""
        age = _hours(time.time() - known.created_at)
        note = f"{_UNREACHABLE}; the packages are those of {age} ago."
        notes = [one for one in known.notes if not one.startswith(_UNREACHABLE)]
        until = time.time() + min(RETRY_SECONDS, self._order.fresh_seconds)
        return replace(known, put_off_until=until, notes=(*notes, note))

    def _resolve(self, *, or_offline: bool) -> tuple[Resolution, str]:
        started = time.monotonic()
        if self._order.project is not None:
            lock, from_cache = self._export(self._order.project), False
            if self._order.requirements:
                lock, from_cache = self._beside(lock, or_offline=or_offline)
        elif self._order.requirements:
            lock, from_cache = self._compile(self._order.constraints, or_offline=or_offline)
        else:
            lock, from_cache = "", False
        count = len(read_lock(lock))
        if count:
            self._say(f"resolved {count} package{'s' if count > 1 else ''} in {time.monotonic() - started:.1f} s")
        notes = [_FROM_CACHE] if from_cache else []
        notes += [masked(warning) for warning in self._uv.warnings]
        now, fresh = time.time(), self._order.fresh_seconds
        local = {str(path): fingerprint_of(path) for path in self._copied(read_lock(lock))}
        resolution = Resolution(
            digest=self._digest(lock), created_at=now, notes=tuple(notes), local=tuple(local.items())
        )
        if from_cache or is_true(self._environ, "UV_OFFLINE"):  # There may be newer ones.
            resolution = replace(resolution, created_at=now - fresh, put_off_until=now + min(RETRY_SECONDS, fresh))
        return resolution, lock

    def _beside(self, lock: str, *, or_offline: bool) -> tuple[str, bool]:
        """Add the requirements to a project's lock, which keeps its versions."""
        locked = [line for line in read_lock(lock) if line.applies(self._python_version)]
        names = {line.distribution for line in locked}
        pins = tuple(line.text for line in locked if line.distribution is not None and line.name is None)
        more, from_cache = self._compile(pins, or_offline=or_offline)
        added = [line.full for line in read_lock(more) if line.distribution not in names]
        return "\n".join((lock.rstrip("\n"), *added, "")), from_cache

    def _compile(self, constraints: tuple[str, ...], *, or_offline: bool) -> tuple[str, bool]:
        order = self._order
        count = len(order.requirements)
        self._say(f"resolving {count} requirement{'s' if count > 1 else ''}")
        refreshed: list[str] = []
        for path in filter(None, map(local_path, order.requirements)):
            if path.is_dir():  # uv takes a project for unchanged while its pyproject.toml is.
                name = project_name(path)
                refreshed += ["--refresh-package", name] if name else ["--refresh"]
        with tempfile.TemporaryDirectory() as scratch:
            # Told where to write, uv does not write where a setting says.
            written = Path(scratch) / "lock.txt"
            _output, from_cache = self._uv.run_or_offline(
                *(*_COMPILE, "--python", self._python, "--python-version", self._python_version),
                *("--output-file", str(written)),
                *(*refreshed, *order.options, "-"),
                again=or_offline,
                stdin="".join(f"{one}\n" for one in self._requirements),
                constraints=constraints,
                variables=_build_elsewhere(Path(scratch)),
            )
            return stripped(written.read_text("utf-8") if written.exists() else ""), from_cache

    def _export(self, project: str) -> str:
        """Return what a project's lock says; what lies in the project itself is named in it by where it lies."""
        self._say("reading the project's lock")
        text = self._uv.run(
            *("export", "--frozen", "--color", "never", "--no-header", "--no-annotate", "--quiet"),
            *("--project", project, "--python", self._python),
        )
        return stripped(text)

    def _copied(self, lines: "list[LockedLine]") -> "list[Path]":
        """Return the local packages among the lines of which a copy is installed."""
        paths = [self._path(line) for line in lines if line.applies(self._python_version) and not line.editable]
        return [path for path in paths if path is not None and str(path) not in self._order.editables]

    def _path(self, line: LockedLine) -> Path | None:
        """Return where a local package lies; uv names one that another names by a relative path just so."""
        path = line.path(self._lock_folder())
        if path is None or path.exists() or self._order.project is not None:
            return path
        asked = [local_path(one) for one in self._order.requirements]
        found = {there for one in asked if one is not None and (there := line.path(one)) is not None and there.exists()}
        if len(found) != 1:
            message = f"{line.text.split(' ;')[0]} is a path that a local package names, and it leads nowhere."
            raise ToolError(PreparationFailure(kind="build", message=message, detail=message))
        return found.pop()

    def _digest(self, lock: str) -> str:
        lines = read_lock(lock)
        content = [
            _FORMAT,
            self._python,
            self._python_version,
            repr(fingerprint(Path(self._python))),
            [line.full for line in lines],  # Another index may have something else under the same version.
            [fingerprint_of(path) for path in self._copied(lines)],
            [[path, metadata_fingerprint(Path(path))] for path in sorted(self._order.editables)],
            self._order.paths,
            sorted((name, value) for name, value in self._environ.items() if name.startswith(_INSTALLS_OTHERWISE)),
            install_settings(self._settings_files()),
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    # -- making ----------------------------------------------------------------------------------------------------

    def _make(self, digest: str, lock: str, fd: int) -> Environment:
        folder = self._store.folder(digest)

        def say(text: str) -> None:
            os.pwrite(fd, f"{text}\n".encode(), 0)
            self._say(text)

        self._remove(folder)  # What a build that was cut off may have left.
        # uv holds the lock too: killed or not, nobody else builds here as long as it works.
        self._uv.held.append(fd)
        try:
            self._uv.run(*("venv", "--no-project", "--no-config", "--quiet", "--python", self._python, str(folder)))
            site = site_packages(folder)
            lines, own = without_project(read_lock(lock), self._lock_folder())
            lines = [line for line in lines if line.applies(self._python_version)]
            with tempfile.TemporaryDirectory() as scratch:
                self._install(folder, site, lines, Path(scratch), say)
            installed = sorted(installed_in(site), key=lambda one: one.name)
            self._require_all(lines, installed)
            for one in installed:
                one.forget_credentials()
            paths = [*self._order.paths, *(str(source_root(path)) for path in own)]
            if paths:
                (site / _PATHS_FILE).write_text("".join(f"{_path_line(path)}\n" for path in paths), "utf-8")
            environment = Environment(
                digest=digest,
                python=folder / "bin" / "python",
                python_version=self._python_version,
                packages=tuple(one.shown() for one in installed),
                size_bytes=_size(folder),
                created_at=time.time(),
            )
            self._store.mark_ready(environment, lock)
        except BaseException:
            self._remove(folder)
            raise
        finally:
            self._uv.held.clear()
        say("ready")
        return environment

    def _remove(self, folder: Path) -> None:
        (folder / MARKER).unlink(missing_ok=True)  # First: what is half removed must not be taken for whole.
        shutil.rmtree(folder, ignore_errors=True)

    def _require_all(self, lines: "list[LockedLine]", installed: "list[Installed]") -> None:
        """Make sure that what is marked as ready has in it what was asked for."""
        missing = {line.distribution for line in lines} - {one.name for one in installed} - {None}
        if missing:
            message = f"uv did not install {', '.join(sorted(map(str, missing)))}, and did not say why."
            raise ToolError(PreparationFailure(kind="other", message=message, detail=message))

    def _install(self, folder: Path, site: Path, lines: "list[LockedLine]", scratch: Path, say: Say) -> None:
        if not lines:
            return
        built: dict[Path, Path] = {}
        wanted: list[str] = []
        for number, line in enumerate(lines):
            project = self._path(line)
            if project is None:
                wanted.append(line.full)
                continue
            if project.is_dir():
                say(f"building {line.name or project.name}")
                built[self._wheel(project, scratch / str(number))] = project
                project = next(reversed(built))
            wanted.append(line.at(project))
        say(f"installing {len(lines)} package{'s' if len(lines) > 1 else ''}")
        told = 0

        def count() -> None:
            nonlocal told
            installed = sum(1 for _ in site.glob("*.dist-info"))
            if installed != told:
                told = installed
                done = installed >= len(lines)
                say("compiling to bytecode" if done else f"installing {installed} of {len(lines)}")

        self._uv.run_or_offline(
            *(*_INSTALL, "--python", str(folder / "bin" / "python"), "--python-version", self._python_version),
            *(*self._order.options, "-"),
            stdin=restored("\n".join(wanted) + "\n", self._requirements),
            on_tick=count,
        )
        for wheel, project in built.items():
            editable = str(project) in self._order.editables
            if editable:
                make_editable(site, wheel, project)
            say_where_from(site, wheel, project, editable=editable)

    def _wheel(self, project: Path, scratch: Path) -> Path:
        """Build a local project anew; what its build leaves behind stays out of the project."""
        scratch.mkdir()
        self._uv.run_or_offline(
            *("build", "--wheel", "--color", "never", "--python", self._python, "--out-dir", str(scratch / "out")),
            *(*self._order.options, str(project)),
            variables=_build_elsewhere(scratch),
        )
        (wheel,) = (scratch / "out").glob("*.whl")
        return wheel

    def _settings_files(self) -> "list[Path]":
        return list(settings_files(self._environ, Path(self._order.cwd)))

    def _lock_folder(self) -> Path:
        return Path(self._order.project_lock or "/").parent

    # -- telling ---------------------------------------------------------------------------------------------------

    def _repeat(self, line: bytes) -> None:
        """Say what another build of the same environment says."""
        self._say(line.decode("utf-8", "replace") or "waiting for another build of the same environment")

    def _give_name(self, name: str, environment: Environment, lock: str) -> None:
        NameRegister(self._store.root / "named").put(
            self._order.owner,
            NamedEnvironment(
                name=name,
                digest=environment.digest,
                python=self._python,
                python_version=self._python_version,
                dependencies=self._order.asked,
                editables=self._order.editables,
                lock=lock,
                created_at=time.time(),
            ),
        )


def _build_elsewhere(scratch: Path) -> dict[str, str]:
    """Return variables that keep a build out of the project it builds: setuptools and Python write into it."""
    config = scratch / "distutils.cfg"
    config.write_text(f"[egg_info]\negg_base={scratch}\n[build]\nbuild_base={scratch / 'build'}\n", "utf-8")
    return {"DIST_EXTRA_CONFIG": str(config), "GIT_OPTIONAL_LOCKS": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def _path_line(path: str) -> str:
    """Return the line for a path file; where packages are installed, their own such files count too."""
    return f"import site; site.addsitedir({path!r})" if path.endswith("/site-packages") else path


def _size(folder: Path) -> int:
    total = 0
    for root, _folders, names in os.walk(folder):
        for name in names:
            total += os.lstat(os.path.join(root, name)).st_size
    return total


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.0f} hours" if hours < 48 else f"{hours / 24:.0f} days"
