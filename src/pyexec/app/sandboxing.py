"""How this installation puts executions into sandboxes."""

import hashlib
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from pyexec.domain.limits import MEGABYTE
from pyexec.executions.sandboxed import Sandboxing
from pyexec.settings import Settings
from pyexec.storage.state_folder import StateFolder
from pyexec.walls.bubblewrap.orders import KeeperOrders
from pyexec.walls.bubblewrap.python import WANTED
from pyexec.walls.bubblewrap.wall import BubblewrapWall

_KEEPER_NEEDS = ("PATH", "LD_LIBRARY_PATH")


def open_sandboxing(settings: Settings, folder: StateFolder) -> Sandboxing | None:
    """Return how executions are put into sandboxes; None where there can be none. Starts nothing."""
    if sys.platform != "linux":
        return None
    orders = _keeper_orders(settings, folder)
    return Sandboxing(
        wall=BubblewrapWall(orders),
        requirements=("ipython", "numpy", "pandas", "matplotlib"),
        python=WANTED,
    )


def _keeper_orders(settings: Settings, folder: StateFolder) -> KeeperOrders:
    orders = KeeperOrders(
        folder=Path(),
        key="",
        budget=4096 * MEGABYTE,
        environ={name: settings.environ[name] for name in _KEEPER_NEEDS if name in settings.environ},
        version=version("mcp-pyexec"),
    )
    digest = hashlib.sha256(f"{folder.root}\n{orders.to_json()}".encode()).hexdigest()[:16]
    return replace(orders, folder=folder.root / "sandboxes" / digest, key=digest)
