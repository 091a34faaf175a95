"""The bubblewrap wall, as the attacks see it."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.limits import MEGABYTE, SandboxLimits
from pyexec.domain.sandboxes import FONTS, PRELOADED, PYTHON
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.environments.orders import read_answer
from pyexec.environments.plan import Planner
from pyexec.environments.sandboxes import SandboxEnvironments
from pyexec.environments.service import environment_places
from pyexec.environments.store import site_packages
from pyexec.processes.probe import python_version
from pyexec.sandbox.forks import Groups, NoGroupsError, find_groups
from pyexec.storage.locks import held
from pyexec.storage.state_folder import StateFolder
from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.contents import PACKAGES, USERS, Inside, plan_for
from pyexec.walls.bubblewrap.inside import INSTALL_FONTS
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec.walls.bubblewrap.python import look_at
from pyexec.walls.bubblewrap.sandboxes import Sandboxes
from tests.walls.interface import End

HERE = Path(__file__).parent
TEST_CODE = "/opt/pyexec/tests"
GUEST = "attack_guest:run"
DEPENDENCIES = ("duckdb", "ipython", "matplotlib", "numpy", "pandas", "polars", *FONTS)
SERVER = {"PYEXEC_SANDBOX_PACKAGES": " ".join(DEPENDENCIES), "PYEXEC_SANDBOX_CPU": "2"}
"""How a server is set whose sandboxes are to have what these tests have installed."""

BUILD_SECONDS = 500.0
KEPT_SECONDS = 30 * 24 * 3600.0
LIMITS = SandboxLimits(memory=256 * MEGABYTE, cpu=1.0, workspace=32 * MEGABYTE, temporary=8 * MEGABYTE, files=2048)
"""Smaller than the usual ones where an attack has to use them up."""

BUDGET = 6144 * MEGABYTE
_LEFT_OUT = shutil.ignore_patterns("test", "tests", "idlelib", "site-packages", "config-*", "*.a", "__pycache__")
INTERPRETER_NEEDS = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}


def sandbox_python() -> Path:
    """Return an interpreter that sandboxes can run on."""
    finder = InterpreterFinder(os.environ, None, python_version, own=Path(sys.executable))
    return finder.find(PYTHON).path


def copy_interpreter(folder: Path) -> None:
    """Put an interpreter that sandboxes can run on into a folder; it needs LD_LIBRARY_PATH for the `lib` in there."""
    python = look_at(sandbox_python(), INTERPRETER_NEEDS)
    (folder / "bin").mkdir(parents=True)
    _link(str(python.executable.resolve()), str(folder / "bin/python3"))
    shutil.copytree(python.prefix / "lib", folder / "lib", copy_function=_link, ignore=_LEFT_OUT, symlinks=True)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # Another disk.
        shutil.copy2(source, target)


def packages(home: Path, wanted: Sequence[str] = DEPENDENCIES) -> Path:
    """Return the folder of an environment's packages, made in a state folder where it is not there yet."""
    return site_packages(made_environment(home, wanted))


def share_environments(home: Path, config: pytest.Config) -> Path:
    """Give a state folder the environments of `SERVER`, made once for all tests; return their folder."""
    cache = config.cache
    assert cache is not None
    kept = cache.mkdir("sandbox-packages") / "home"
    made_environment(kept, DEPENDENCIES)
    (home / "environments").symlink_to(kept / "environments")
    return kept / "environments"


def made_environment(home: Path, wanted: Sequence[str]) -> Path:
    """Return the folder of an environment for sandboxes, made in a state folder where it is not there yet."""
    state = StateFolder(home)
    state.create()
    store, names = environment_places(state.environments)
    finder = InterpreterFinder(os.environ, state.interpreters_cache, python_version, own=Path(sys.executable))
    planner = Planner(
        finder=finder,
        store=store,
        names=names,
        environ=os.environ,
        own_prefix=Path(sys.prefix),
        own_version="3.11",
        fresh_seconds=KEPT_SECONDS,
    )
    sandboxes = SandboxEnvironments(planner=planner, finder=finder, store=store, environ=os.environ, directory=home)
    holder = home / f"holder-{os.getpid()}-{len(wanted)}"
    holder.mkdir(exist_ok=True)
    with held(holder / "lock"):
        plan = sandboxes.plan(folder=holder, holder_lock=holder / "lock", owner="tests", packages=wanted)
        environment = plan.environment
        if plan.prepare is not None:
            subprocess.run(
                plan.prepare.argv,
                input=plan.prepare.stdin,
                env=sandboxes.build_environ,
                text=True,
                check=True,
                timeout=BUILD_SECONDS,
            )
            environment = store.get(read_answer(holder).digest or "")
    assert environment is not None
    return store.folder(environment.digest)


def inside(packages: Path | None, **given: Any) -> Inside:
    """Return what runs behind the wall in tests."""
    python = packages.parents[2] / "bin" / "python" if packages is not None else sandbox_python()
    usual = Inside(
        python=look_at(python, INTERPRETER_NEEDS),
        packages=packages,
        guest=GUEST,
        preloaded=(*PRELOADED, INSTALL_FONTS) if packages is not None else (),
        more={TEST_CODE: HERE / "inside"},
        environment={"PYTHONPATH": f"{PACKAGES}:{TEST_CODE}"},
    )
    return replace(usual, **given)


def own_groups() -> Groups:
    """Return control groups, of whichever version there is here."""
    try:
        return find_groups(f"test-{os.getpid()}-{os.urandom(4).hex()}", BUDGET)
    except NoGroupsError as error:
        # Without them an attack could harm the machine that the tests run on.
        pytest.skip(f"no control groups: {error}")


@contextmanager
def wall_around(
    what: Inside, *, ready: int = 0, limits: SandboxLimits | None = None, groups: Groups | None = None
) -> Generator[Sandboxes]:
    """Put up a wall, with control groups of its own where none are given; nothing is left of it."""
    root = os.geteuid() == 0
    groups = groups or own_groups()
    environ: Mapping[str, str] = INTERPRETER_NEEDS
    plan = plan_for(what, find_bubblewrap(os.environ.get("PATH")), USERS if root else None)
    wall = Sandboxes(plan, groups, environ, ready=ready, limits=limits)
    try:
        yield wall
    finally:
        wall.close()
        assert groups.remove(), "control groups were left behind"


class AttackedBox:
    """See `tests.walls.interface.Sandbox`."""

    def __init__(self, box: Box) -> None:
        self.box = box

    @property
    def connection(self) -> socket.socket:
        return self.box.sandbox.socket

    def end(self, seconds: float) -> End | None:
        ending = self.box.wait_ended(seconds)
        if ending is None:
            return None
        return End(str(ending.cause), ending.value, ending.memory_limit, ending.peak_memory)

    def interrupt(self) -> None:
        self.box.interrupt()

    def kill(self) -> bool:
        return self.box.kill()

    def processes(self) -> list[int]:
        assert self.box.group is not None
        return self.box.group.members()

    def throttled(self) -> int:
        usage = self.box.usage()
        assert usage is not None
        return usage.throttled

    def close(self) -> None:
        self.box.close()


class AttackedWall:
    """See `tests.walls.interface.Wall`."""

    def __init__(self, wall: Sandboxes, limits: SandboxLimits) -> None:
        self.wall = wall
        self.limits = limits
        self.memory = limits.memory
        self.processes = limits.processes
        self.open_files = limits.open_files
        self.workspace = limits.workspace
        self.temporary = limits.temporary
        self.files = limits.files

    def sandbox(self, *, cpu: float | None = None, memory: int | None = None) -> AttackedBox:
        limits = replace(self.limits, cpu=cpu or self.limits.cpu, memory=memory or self.limits.memory)
        return AttackedBox(self.wall.sandbox(limits))
