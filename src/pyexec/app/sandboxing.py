"""How this installation puts executions into sandboxes."""

import hashlib
import sys
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from pyexec.domain.sandboxes import WAIVABLE, SandboxSettings
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.environments.packages.service import PackageSets
from pyexec.environments.packages.sets import PackageStore
from pyexec.environments.plan import Planner
from pyexec.environments.sandboxes import SandboxEnvironments
from pyexec.environments.store import EnvironmentStore
from pyexec.environments.uv import find_uv
from pyexec.executions.sandboxed import InSandboxes
from pyexec.processes import machine
from pyexec.sessions.directory import SessionDirectory
from pyexec.sessions.packages import SessionPackages
from pyexec.sessions.service import SessionService
from pyexec.settings import Settings
from pyexec.storage.state_folder import StateFolder
from pyexec.walls.bubblewrap.orders import KeeperOrders
from pyexec.walls.bubblewrap.wall import BubblewrapWall

KEEPER = "pyexec.app.sandbox_keeper"
_KEEPER_NEEDS = ("PATH", "LD_LIBRARY_PATH")
_SHARE = (3, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandboxing:
    """What there is where there can be sandboxes."""

    way: InSandboxes
    wall: BubblewrapWall
    directory: SessionDirectory
    sessions: SessionService
    packages: SessionPackages


def open_sandboxing(
    settings: Settings,
    folder: StateFolder,
    planner: Planner,
    finder: InterpreterFinder,
    stores: tuple[EnvironmentStore, PackageStore],
) -> Sandboxing | None:
    """Return how things are run in sandboxes; None where there can be none. Starts nothing."""
    if sys.platform != "linux":
        return None
    store, packages = stores
    environments = SandboxEnvironments(
        planner=planner, finder=finder, store=store, environ=settings.environ, directory=folder.root
    )
    waived = [WAIVABLE[name] for name in settings.sandboxes.waived]
    wall = BubblewrapWall(_keeper_orders(settings, folder), KEEPER)
    directory = SessionDirectory(folder.sessions, settings.sessions)
    sets = PackageSets(
        store=packages,
        uv=lambda: find_uv(settings.environ, settings.prefix),
        environ=environments.build_environ,
        settings=settings.packages,
        directory=folder.root,
        fresh_seconds=settings.environment_limits.fresh,
        prepare_seconds=settings.limits.prepare_timeout,
    )
    way = InSandboxes(
        wall=wall,
        sessions=directory,
        environments=environments,
        sets=sets,
        packages=settings.sandboxes.packages,
        python=settings.sandboxes.python,
        data=settings.sandboxes.data,
        state=folder.root,
        notes=(f"Where they cannot be had, limits are waived here: {', '.join(waived)}.",) if waived else (),
    )
    return Sandboxing(
        way=way,
        wall=wall,
        directory=directory,
        sessions=SessionService(directory, wall),
        packages=SessionPackages(directory, sets, environments.at),
    )


def memory_together(settings: SandboxSettings) -> int:
    """Return how much memory all sandboxes may have together, in bytes."""
    if settings.together is not None:
        return settings.together
    part, whole = _SHARE
    return machine.memory() * part // whole


def _keeper_orders(settings: Settings, folder: StateFolder) -> KeeperOrders:
    sandboxes = settings.sandboxes
    orders = KeeperOrders(
        folder=Path(),
        key="",
        budget=memory_together(sandboxes),
        limits=sandboxes.limits,
        ready=sandboxes.ready,
        waiting=sandboxes.waiting_for_room,
        patience=sandboxes.patience,
        preloaded=sandboxes.preloaded,
        waived=sandboxes.waived,
        shared=tuple((one.place, one.path) for one in sandboxes.data if not one.owners),
        sessions=settings.sessions,
        environ={name: settings.environ[name] for name in _KEEPER_NEEDS if name in settings.environ},
        version=version("mcp-pyexec"),
    )
    digest = hashlib.sha256(f"{folder.root}\n{orders.to_json()}".encode()).hexdigest()[:16]
    return replace(orders, folder=folder.root / "sandboxes" / digest, key=digest)
