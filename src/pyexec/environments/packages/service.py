"""Packages for sandboxes: found, put together outside, placed in sessions that live."""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError, PackagesUnavailableError
from pyexec.domain.packages import PackageSettings
from pyexec.environments.asking import Preparation, RunPlan
from pyexec.environments.orders import read_answer
from pyexec.environments.packages.orders import Base, PackageOrder, base_of
from pyexec.environments.packages.placing import lock_of, place, placed_in
from pyexec.environments.packages.privacy import has_index_of_its_own
from pyexec.environments.packages.sets import SCRATCH, PackageSet, PackageStore
from pyexec.environments.packages.wanted import There, checked, comes_from_the_caller, is_there, refuse_clash
from pyexec.environments.plan import BUILDER
from pyexec.environments.store import Environment
from pyexec.environments.tool import Say
from pyexec.environments.uv_settings import settings_files
from pyexec.processes.commands import run_tool
from pyexec.storage.locks import held, try_hold

REMEMBERED_SECONDS = 60.0
"""How long a set that was found counts for the next one who asks for the same, who need not look at it then."""

MOST_REMEMBERED = 256
_LOCK = "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPlan:
    """Packages for a sandbox: ready and leased, or what puts them together.

    Attributes:
        ready: The set.
        prepare: A program to run first, whose answer tells of the set.
        notes: What the reader of the result should know, a sentence each.
    """

    ready: PackageSet | None = None
    prepare: Preparation | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagesAsked:
    """What somebody asks for.

    Attributes:
        requirements: What they want to import, as they wrote it.
        owner: Who they are.
        index_url: The package index to use in place of the usual one.
        into: The folder of a session's packages, to be put into it; what lies there stays as it is.
        called: How to call the requirements in a message.
    """

    requirements: tuple[str, ...] = field(repr=False)
    owner: str
    index_url: str | None = field(default=None, repr=False)
    into: Path | None = None
    called: str = "dependencies"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who uses a set, see `EnvironmentStore.lease`, and the folder for the answer of what puts it together."""

    folder: Path
    lock: Path

    @property
    def holder(self) -> str:
        """Their name."""
        return self.lock.parent.name


_Remembered = tuple[PackagesAsked, tuple[str, ...], str]


class PackageSets:
    """Packages that callers want in sandboxes. Methods block on the disk, and those that put together for minutes.

    Args:
        store: The sets that have been put together.
        uv: Finds the program.
        environ: The variables that it is run with.
        settings: What the operator allows.
        directory: Where local paths begin; uv's settings there count, so it is no project.
        fresh_seconds: How old a resolution may be before the index is asked again.
        prepare_seconds: How long putting together may take.
    """

    def __init__(
        self,
        *,
        store: PackageStore,
        uv: Callable[[], Path],
        environ: Mapping[str, str],
        settings: PackageSettings,
        directory: Path,
        fresh_seconds: float,
        prepare_seconds: float,
    ) -> None:
        self._store = store
        self._uv = uv
        self._environ = environ
        self._settings = settings
        self._directory = directory
        self._fresh_seconds = fresh_seconds
        self._prepare_seconds = prepare_seconds
        self._known: dict[_Remembered, tuple[PackageSet, tuple[str, ...], float]] = {}

    def plan(self, asked: PackagesAsked, base: RunPlan, lease: Lease) -> SetPlan:
        """Plan packages for a sandbox that is to begin; puts nothing together, and starts nothing.

        Args:
            asked: What they are.
            base: What the sandbox runs on, see `SandboxEnvironments.plan`; perhaps not made yet.
            lease: Who uses them.

        Raises:
            InvalidArgumentError: They are not allowed, or do not go with what is there; the message names both.
            NotFoundError: There is nothing at a path.
            UvNotFoundError: There is no uv.
        """
        found = self._plan(asked, base_of(base.environment) if base.environment else None, lease)
        if found.prepare is None or base.prepare is None:
            return found
        stdin = f"{base.prepare.stdin}\n{found.prepare.stdin}"
        return SetPlan(prepare=Preparation(argv=base.prepare.argv, stdin=stdin), notes=found.notes)

    def put_together(self, asked: PackagesAsked, base: Environment, lease: Lease, say: Say | None = None) -> PackageSet:
        """Return a set, put together if need be: what of the requirements a sandbox lacks, and what that needs.

        Args:
            asked: What they are.
            base: What the sandbox runs on.
            lease: Who uses them.
            say: Hears what is going on, from another thread.

        Raises:
            InvalidArgumentError: They are not allowed, or do not go with what is there; the message names both.
            NotFoundError: There is nothing at a path.
            UvNotFoundError: There is no uv.
            PackagesUnavailableError: They cannot be had; the message says why.
        """
        plan = self._plan(asked, base_of(base), lease)
        if plan.ready is not None:
            return plan.ready
        if plan.prepare is not None:
            self._prepare(plan.prepare, say)
        answer = read_answer(lease.folder)
        if answer.failure is not None or answer.package_set is None:
            raise PackagesUnavailableError(answer.failure or "The packages could not be put together.")
        return self._store.set_of(answer.package_set, answer.package_list or ())

    def add(self, asked: PackagesAsked, base: Environment, say: Say | None = None) -> PackageSet:
        """Give packages to a session that lives: return what was added, once it can be imported there.

        Args:
            asked: What they are, and `into` what.
            base: What its sandbox runs on.
            say: Hears what is going on, from another thread.

        Raises:
            InvalidArgumentError: They are not allowed, or do not go with what is there; the message names both.
            NotFoundError: There is nothing at a path.
            UvNotFoundError: There is no uv.
            PackagesUnavailableError: They cannot be had, or bring a file that is there otherwise.
            OSError: The disk would not take it.
        """
        self._store.create()
        with (
            tempfile.TemporaryDirectory(dir=self._store.root, prefix=SCRATCH) as scratch,
            held(Path(scratch) / _LOCK),
        ):
            return self.put_together(asked, base, Lease(folder=Path(scratch), lock=Path(scratch) / _LOCK), say)

    def _plan(self, asked: PackagesAsked, base: Base | None, lease: Lease) -> SetPlan:
        if asked.into is None:
            return self._plan_on(asked, (), base, lease)
        with try_hold(lock_of(asked.into)) as free:
            if not free or base is None:
                # Somebody else puts something into it: what makes this waits for that.
                return self._after(self._order(asked, self._checked(asked), base, lease))
            found = self._plan_on(asked, placed_in(asked.into), base, lease)
            if found.ready is not None and found.ready.folder is not None:
                place(found.ready.folder, asked.into)
            return found

    def _plan_on(self, asked: PackagesAsked, beside: tuple[str, ...], base: Base | None, lease: Lease) -> SetPlan:
        known = self._leased(asked, beside, base, lease)
        if known is not None:
            return known
        requirements = self._checked(asked)
        if base is not None:
            there = There(preloaded=base.packages, beside=beside, python_version=base.python_version)
            refuse_clash(requirements, there)
            if is_there(requirements, there):
                return SetPlan(ready=PackageSet())
        order = self._order(asked, requirements, base, lease)
        ready = self._ready(replace(order, beside=beside), lease)
        if ready is not None and base is not None:
            self._remember((asked, beside, base.digest), ready)
            return ready
        return self._after(order)

    def _checked(self, asked: PackagesAsked) -> tuple[str, ...]:
        if asked.index_url is not None and "other-indexes" not in self._settings.sources:
            raise InvalidArgumentError(
                "index_url was given, and packages for sandboxes come from the index that the operator has chosen.",
                hint="The operator can allow it (PYEXEC_PACKAGES_SOURCES=index,other-indexes).",
            )
        return checked(asked.requirements, self._settings, self._directory, called=asked.called)

    def _after(self, order: PackageOrder) -> SetPlan:
        return SetPlan(prepare=Preparation(argv=(sys.executable, *BUILDER), stdin=order.to_json()))

    def _order(
        self, asked: PackagesAsked, requirements: tuple[str, ...], base: Base | None, lease: Lease
    ) -> PackageOrder:
        apart = comes_from_the_caller(requirements, asked.index_url)
        private = apart or has_index_of_its_own(self._environ, settings_files(self._environ, self._directory))
        return PackageOrder(
            root=str(self._store.root),
            uv=str(self._uv()),
            base=base,
            requirements=requirements,
            into=str(asked.into) if asked.into else None,
            settings=self._settings,
            owner=asked.owner if private else None,
            index_url=asked.index_url,
            cache_apart=apart,
            cwd=str(self._directory),
            fresh_seconds=self._fresh_seconds,
            folder=str(lease.folder),
            holder=lease.holder,
            holder_lock=str(lease.lock),
        )

    def _ready(self, order: PackageOrder, lease: Lease) -> SetPlan | None:
        if order.base is None:
            return None
        known = self._store.resolution(order.key(self._environ))
        if known is None or not known.is_fresh(self._fresh_seconds):
            return None
        environment = self._store.lease(known.digest, lease.holder, lease.lock)
        if environment is None:
            return None
        return SetPlan(ready=self._store.set_of(known.digest, environment.packages), notes=known.notes)

    def _leased(self, asked: PackagesAsked, beside: tuple[str, ...], base: Base | None, lease: Lease) -> SetPlan | None:
        """Return a set of a moment ago, if it can still be taken into use."""
        if base is None:
            return None
        found, notes, until = self._known.get((asked, beside, base.digest), (None, (), 0.0))
        if found is None or time.monotonic() >= until:
            return None
        leased = self._store.lease(found.digest, lease.holder, lease.lock)
        return SetPlan(ready=found, notes=notes) if leased is not None else None

    def _remember(self, what: _Remembered, plan: SetPlan) -> None:
        asked = what[0]
        if plan.ready is None or any("://" in one for one in asked.requirements) or asked.index_url is not None:
            return  # Credentials are not kept, not even here.
        while len(self._known) >= MOST_REMEMBERED:
            self._known.pop(next(iter(self._known)), None)
        self._known[what] = (plan.ready, plan.notes, time.monotonic() + REMEMBERED_SECONDS)

    def _prepare(self, prepare: Preparation, say: Say | None) -> None:
        until = time.monotonic() + self._prepare_seconds

        def look() -> None:
            if time.monotonic() > until:
                raise PackagesUnavailableError(f"Installing the packages took longer than {self._prepare_seconds:g} s.")

        run_tool(prepare.argv, env=self._environ, stdin=prepare.stdin, on_line=say, on_tick=look)
