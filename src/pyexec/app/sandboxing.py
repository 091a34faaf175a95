"""How this installation puts executions into sandboxes."""

import hashlib
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from pyexec.app.sandboxes import memory_together
from pyexec.domain.sandboxes import WAIVABLE
from pyexec.environments.sandboxes import SandboxEnvironments
from pyexec.executions.sandboxed import Sandboxing
from pyexec.settings import Settings
from pyexec.storage.state_folder import StateFolder
from pyexec.walls.bubblewrap.orders import KeeperOrders
from pyexec.walls.bubblewrap.wall import BubblewrapWall

KEEPER = "pyexec.app.sandbox_keeper"
_KEEPER_NEEDS = ("PATH", "LD_LIBRARY_PATH")


def open_sandboxing(settings: Settings, folder: StateFolder, environments: SandboxEnvironments) -> Sandboxing | None:
    """Return how executions are put into sandboxes; None where there can be none. Starts nothing."""
    if sys.platform != "linux":
        return None
    waived = [WAIVABLE[name] for name in settings.sandboxes.waived]
    return Sandboxing(
        wall=BubblewrapWall(_keeper_orders(settings, folder), KEEPER),
        environments=environments,
        packages=settings.sandboxes.packages,
        python=settings.sandboxes.python,
        notes=(f"Where they cannot be had, limits are waived here: {', '.join(waived)}.",) if waived else (),
    )


def _keeper_orders(settings: Settings, folder: StateFolder) -> KeeperOrders:
    orders = KeeperOrders(
        folder=Path(),
        key="",
        together=memory_together(settings.sandboxes),
        settings=settings.sandboxes,
        environ={name: settings.environ[name] for name in _KEEPER_NEEDS if name in settings.environ},
        version=version("mcp-pyexec"),
    )
    digest = hashlib.sha256(f"{folder.root}\n{orders.to_json()}".encode()).hexdigest()[:16]
    return replace(orders, folder=folder.root / "sandboxes" / digest, key=digest)
