"""The program that is the keeper of sandboxes: `python -I -m pyexec.app.sandbox_keeper`, its orders on stdin."""

import sys
from functools import partial

from pyexec.app.sandboxes import inside_of
from pyexec.walls.bubblewrap.keeper import keep
from pyexec.walls.bubblewrap.orders import KeeperOrders


def main() -> int:
    """Be the keeper; see `keep`."""
    orders = KeeperOrders.from_json(sys.stdin.read())
    return keep(orders, partial(inside_of, settings=orders.settings, environ=orders.environ))


if __name__ == "__main__":
    sys.exit(main())
