"""What sandboxes run on: an interpreter that is new enough, and an environment with their packages."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyexec.domain.errors import InterpreterNotFoundError, InvalidArgumentError, WallUnavailableError
from pyexec.domain.sandboxes import GUEST_NEEDS, OLDEST_PYTHON, PACKAGES, PYTHON
from pyexec.environments.asking import Asked, RunPlan
from pyexec.environments.interpreters import Interpreter, InterpreterFinder
from pyexec.environments.locked import read_lock
from pyexec.environments.names import NamedEnvironment
from pyexec.environments.plan import Planner, require_python
from pyexec.environments.python_versions import parse_request, show
from pyexec.environments.requirements import combine, distribution_name, unmet
from pyexec.environments.store import Environment, EnvironmentStore, is_digest
from pyexec.environments.uv import patience

PREFERRED = ">=3.12,<3.15"
"""The versions of Python for which all of the usual packages have wheels: any of these before a newer one."""

SETTING = "PYEXEC_SANDBOX_PACKAGES"
REMEMBERED_SECONDS = 60.0
"""How long a plan that was ready counts for the next one who asks for the same, who need not wait then."""

OLDEST = ".".join(map(str, OLDEST_PYTHON))

_WHEELS_ONLY = {"UV_NO_BUILD": "1"}


class SandboxEnvironments:
    """Plans the environments of sandboxes. Methods block on the disk, and start interpreters that are not known yet.

    Args:
        planner: Makes the plans.
        finder: Knows the interpreters of this machine.
        store: The environments that have been made.
        environ: The server's environment.
        directory: Where local paths among the packages begin; uv's settings there count, so it is no project.
    """

    def __init__(
        self,
        *,
        planner: Planner,
        finder: InterpreterFinder,
        store: EnvironmentStore,
        environ: Mapping[str, str],
        directory: Path,
    ) -> None:
        self._planner = planner
        self._finder = finder
        self._store = store
        self._own_environ = environ
        # What is only unpacked runs nothing on this machine; who wants builds says so to uv.
        self._environ = {**_WHEELS_ONLY, **environ}
        self._directory = directory
        self._known: dict[tuple[str, tuple[str, ...]], tuple[RunPlan, float]] = {}

    @property
    def build_environ(self) -> Mapping[str, str]:
        """The environment that a plan's preparation is to be run with."""
        return {**self._environ, **patience(self._environ)}

    @property
    def build_environ_of_named(self) -> Mapping[str, str]:
        """The same for an environment that has a name, which its owner has had made with builds where it needs any."""
        return {**self._own_environ, **patience(self._own_environ)}

    def plan(
        self,
        *,
        folder: Path,
        holder_lock: Path,
        owner: str,
        python: str = PYTHON,
        packages: Sequence[str] = PACKAGES,
        called: str = SETTING,
    ) -> RunPlan:
        """Plan an environment for sandboxes: it is ready, and leased; or the plan carries what makes it.

        Once that preparation has run, its answer in `folder` tells the environment. The plan's `argv` means nothing.

        Args:
            folder: A folder for the answer of what prepares it.
            holder_lock: The lock of who uses it, in a folder of their own: as long as it is held, it is kept.
            owner: Who asks.
            python: A version, a range or a path.
            packages: Requirements.
            called: How to call the packages in a message.

        Raises:
            WallUnavailableError: The interpreter that is asked for is too old for sandboxes.
            InterpreterNotFoundError: None fits, and uv may not fetch one; the hint says how to get one.
            InvalidArgumentError: A requirement cannot be read, or two contradict each other.
            NotFoundError: A path does not exist.
            UvNotFoundError: There is no uv to make it with.
        """
        wanted = (python, tuple(packages))
        known = self._leased(wanted, holder_lock)
        if known is not None:
            return known
        combine((), packages, argument_is=called)
        asked = self._asked(self._environ, folder=folder, holder_lock=holder_lock, owner=owner)
        plan = self._planner.plan(replace(asked, python_version=self._python(python), dependencies=tuple(packages)))
        if plan.prepare is None:
            self._known[wanted] = (plan, time.monotonic() + REMEMBERED_SECONDS)
        return plan

    def require(self, owner: str, name: str, python: str | None = None) -> NamedEnvironment:
        """Return a named environment that sandboxes can run on.

        Raises:
            NotFoundError: This owner has given that name to none.
            InvalidArgumentError: It has another Python than is asked for, or nothing that sandboxes can run on.
        """
        named = self._planner.named(owner, name)
        if python is not None:
            require_python(named, python, "python_version")
        if tuple(map(int, named.python_version.split(".")[:2])) < OLDEST_PYTHON:
            raise InvalidArgumentError(
                f"The environment {name!r} has Python {named.python_version}, and sandboxes need {OLDEST} or newer.",
                hint=f"create_environment makes one of that name anew, with python_version={PYTHON!r}.",
            )
        if named.editables:
            raise InvalidArgumentError(
                f"The environment {name!r} has modules that lie in projects on this machine, which no sandbox sees: "
                f"{', '.join(named.editables[:3])}.",
                hint="Create one into which they are installed, without -e.",
            )
        return named

    def plan_named(
        self, name: str, *, folder: Path, holder_lock: Path, owner: str, python: str | None = None
    ) -> RunPlan:
        """Plan that sandboxes run on a named environment, and where it lacks what the guest needs, on one like it.

        See `plan` for the rest.

        Raises:
            NotFoundError: This owner has given that name to none.
            InvalidArgumentError: See `require`.
            UvNotFoundError: There is no uv to make it with.
        """
        named = self.require(owner, name, python)
        asked = self._asked(self._own_environ, folder=folder, holder_lock=holder_lock, owner=owner)
        here = self._planner.packages_of(named)
        if not unmet(GUEST_NEEDS, here, named.python_version):
            return self._planner.plan(replace(asked, environment=name))
        names = {distribution_name(one) for one in here}
        if any(distribution_name(one) in names for one in GUEST_NEEDS):
            raise InvalidArgumentError(
                f"The environment {name!r} has an older version than sandboxes need of {', '.join(GUEST_NEEDS)}.",
                hint="Create it with a newer one.",
            )
        pinned = [line.text for line in read_lock(named.lock) if line.applies(named.python_version)]
        is_here = named.python.startswith("/") and Path(named.python).exists()
        like_it = replace(
            asked,
            python_version=named.python if is_here else named.python_version,
            dependencies=(*pinned, *GUEST_NEEDS),
        )
        return self._planner.plan(like_it)

    def at(self, prefix: Path) -> Environment | None:
        """Return the environment that lies in a folder; None where there is none any more."""
        return self._store.get(prefix.name) if is_digest(prefix.name) else None

    def _asked(self, environ: Mapping[str, str], *, folder: Path, holder_lock: Path, owner: str) -> Asked:
        """Return what the planner is asked, but for what is to be in the environment."""
        return Asked(
            script=None,
            module="pyexec_guest",
            header_source=b"",
            directory=self._directory,
            project=False,
            owner=owner,
            environ=environ,
            folder=folder,
            holder_lock=holder_lock,
        )

    def _leased(self, wanted: tuple[str, tuple[str, ...]], holder_lock: Path) -> RunPlan | None:
        """Return a plan of a moment ago, if its environment can still be taken into use."""
        plan, until = self._known.get(wanted, (None, 0.0))
        if plan is None or plan.environment is None or time.monotonic() >= until:
            return None
        leased = self._store.lease(plan.environment.digest, holder_lock.parent.name, holder_lock)
        return plan if leased is not None else None

    def _python(self, asked: str) -> str:
        """Return the interpreter to use; where there is none that fits, what uv shall fetch."""
        found = self._found(asked)
        if found is None:
            wanted = parse_request(asked)
            return wanted.narrowed(parse_request(PYTHON)).text if wanted.newest else wanted.text
        if found.version[:2] < OLDEST_PYTHON:
            raise WallUnavailableError(
                f"Sandboxes need Python {OLDEST} or newer; PYEXEC_SANDBOX_PYTHON is {asked}, which is "
                f"{show(found.version)}.",
                hint=f"Leave it out, or install one with `uv python install '{PYTHON}'`.",
            )
        # Not the virtual environment it may have been found by, which comes and goes.
        return str(found.path.resolve())

    def _found(self, asked: str) -> Interpreter | None:
        for request in (PREFERRED, asked) if asked == PYTHON else (asked,):
            with suppress(InterpreterNotFoundError):
                return self._finder.find(request)
        return None
