"""The program that is the keeper of sandboxes: `python -I -m pyexec.app.sandbox_keeper`, its orders on stdin."""

import sys
from functools import partial
from pathlib import Path

from pyexec.domain.errors import WallUnavailableError
from pyexec.environments.store import EnvironmentStore
from pyexec.sandbox.claims import LOCK
from pyexec.walls.bubblewrap.contents import Inside
from pyexec.walls.bubblewrap.inside import Ahead, inside_of
from pyexec.walls.bubblewrap.keeper import keep
from pyexec.walls.bubblewrap.orders import KeeperOrders


def main() -> int:
    """Be the keeper; see `keep`."""
    orders = KeeperOrders.from_json(sys.stdin.read())
    return keep(orders, partial(_leased, orders))


def _leased(orders: KeeperOrders, environment: Path, ahead: Ahead) -> Inside:
    """Say what is inside for an environment, which stays where it is as long as this process does."""
    store = EnvironmentStore(environment.parent)
    if store.lease(environment.name, orders.key, orders.folder / LOCK) is None:
        raise WallUnavailableError(f"The environment {environment} is being made or removed.", hint="Try again.")
    return inside_of(environment, orders.preloaded, orders.environ, ahead=ahead)


if __name__ == "__main__":
    sys.exit(main())
