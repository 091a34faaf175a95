"""Sandboxes by the environment they have: a fork server for each, started when it is first asked for."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.contents import USERS, Inside, plan_for
from pyexec.walls.bubblewrap.folders import Folder, shared
from pyexec.walls.bubblewrap.leftovers import OuterWalls
from pyexec.walls.bubblewrap.limits import groups_for
from pyexec.walls.bubblewrap.orders import KeeperOrders
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec.walls.bubblewrap.sandboxes import Sandboxes
from pyexec.walls.bubblewrap.turnstile import Admission
from pyexec.walls.bubblewrap.users import SandboxUsers, given
from pyexec.walls.bubblewrap.workspaces import Workspaces

MOST_FAMILIES = 4
UNUSED_SECONDS = 10.0
"""A fork server that somebody wanted something of more recently does not make room."""

GONE_SECONDS = 3.0
GONE_LOOK_SECONDS = 0.02
OUTER = "outer-walls"
COUNTER = "users"

# Where an environment lies, and which folder that is: one that was made anew in its place is another.
Key = tuple[Path, int, int]


InsideOf = Callable[[Path], Inside]
"""Tells what is inside the wall for an environment; raises `WallUnavailableError` where it can be of no use there."""


@dataclass
class _Family:
    sandboxes: Sandboxes
    used_at: float


class Families:
    """Makes sandboxes for any environment. May be used from several threads.

    Args:
        orders: How.
        inside_of: See `InsideOf`.
        crowded: Tells whether sandboxes are wanted that there is no room for.

    Attributes:
        workspaces: Folders that stay, for sandboxes to write to.

    Raises:
        WallUnavailableError: The wall, or one of the limits, cannot be had.
    """

    def __init__(self, orders: KeeperOrders, inside_of: InsideOf, crowded: Callable[[], bool] = lambda: False) -> None:
        self._orders = orders
        self._crowded = crowded
        self._inside_of = inside_of
        self._outer = OuterWalls(orders.folder / OUTER)
        self._outer.end_left_over()
        self._groups = groups_for(orders.key, orders.budget, orders.waived)
        self._users = USERS if os.geteuid() == 0 else None
        # All keepers of one state folder count together.
        self._handed_out = SandboxUsers(USERS.count, orders.folder.parent / COUNTER)
        self.workspaces = Workspaces(orders.environ)
        self._bwrap = find_bubblewrap(orders.environ.get("PATH"))
        self._lock = threading.Lock()
        self._making: dict[Key, threading.Lock] = {}
        self._families: dict[Key, _Family] = {}
        self._retired: list[Sandboxes] = []

    def sandbox(self, environment: Path, folders: Sequence[Folder], room: Admission) -> Box:
        """Return a sandbox that nobody has used. Blocks: for seconds when it is the first of its environment.

        Args:
            environment: What it runs on.
            folders: The folders of this machine that it has (`Sandboxes.sandbox`).
            room: Hears when there is room for it, and when it is gone.

        Raises:
            WallUnavailableError: The wall, or one of the limits, cannot be had.
            SandboxesFullError: There is not enough memory for one more.
            SandboxNotMadeError: It went wrong this time, or one of the folders is not there.
        """
        box = self._family(environment).sandboxes.sandbox(folders=folders, had=room.had)
        box.on_closed = room.gone
        return box

    def give_up_ready(self) -> bool:
        """End one of the sandboxes that are kept ready; tell whether there was one. Blocks for some milliseconds."""
        with self._lock:
            families = sorted(self._families.values(), key=lambda family: family.used_at)
        return any(family.sandboxes.give_way() for family in families)

    def give_up_unused(self) -> bool:
        """End a fork server that nobody has a sandbox of; tell whether there was one. Blocks for some 100 ms."""
        now = time.monotonic()
        with self._lock:
            unused = [
                key
                for key, family in self._families.items()
                if now - family.used_at > UNUSED_SECONDS and not family.sandboxes.is_in_use()
            ]
            if not unused:
                return False
            family = self._families.pop(min(unused, key=lambda key: self._families[key].used_at))
        self._retire([family])
        while family.sandboxes.is_inhabited() and time.monotonic() - now < GONE_SECONDS:
            time.sleep(GONE_LOOK_SECONDS)
        return True

    def sandbox_at_once(self, environment: Path, folders: Sequence[Folder], room: Admission) -> Box | None:
        """Return a sandbox like `sandbox`, if one is ready; never blocks for long."""
        try:
            family = self._families.get(_key(environment))
        except OSError:
            return None
        if family is None:
            return None
        family.used_at = time.monotonic()
        box = family.sandboxes.sandbox_at_once(folders)
        if box is not None:
            room.had()
            box.on_closed = room.gone
        return box

    def give(self, folder: int) -> None:
        """See that a folder belongs to one of the users that sandboxes are, so that these can write to it.

        Raises:
            OSError: It cannot be given away.
        """
        if self._users is not None:
            given(folder, self._users.first, self._handed_out, self._users.count)

    def close(self) -> None:
        """End all sandboxes and fork servers."""
        with self._lock:
            families, self._families = list(self._families.values()), {}
        for sandboxes in (*(family.sandboxes for family in families), *self._retired):
            sandboxes.close()
        self._outer.forget()
        self._groups.remove()

    def _family(self, environment: Path) -> _Family:
        key = _key(environment)
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            family = self._families.get(key)
            if family is None:
                family = _Family(self._started(environment), time.monotonic())
                with self._lock:
                    self._families[key] = family
                    surplus = self._surplus()
                self._retire(surplus)
            family.used_at = time.monotonic()
            return family

    def _started(self, environment: Path) -> Sandboxes:
        orders = self._orders
        plan = plan_for(self._inside_of(environment), self._bwrap, self._users)
        sandboxes = Sandboxes(
            plan,
            self._groups,
            orders.environ,
            limits=orders.limits,
            ready=orders.ready,
            on_server=self._outer.note,
            usual=shared(orders.shared),
            crowded=self._crowded,
            users=self._handed_out if self._users is not None else None,
        )
        try:
            sandboxes.warm()
        except BaseException:
            sandboxes.close()
            raise
        return sandboxes

    def _retire(self, surplus: list[_Family]) -> None:
        for family in surplus:
            family.sandboxes.retire()
        with self._lock:
            before = [*self._retired, *(family.sandboxes for family in surplus)]
            self._retired = [one for one in before if one.is_inhabited()]

    def _surplus(self) -> list[_Family]:
        """Take out those that have not been used for the longest time, where there are too many."""
        by_age = sorted(self._families, key=lambda key: self._families[key].used_at)
        return [self._families.pop(key) for key in by_age[: max(0, len(by_age) - MOST_FAMILIES)]]


def _key(environment: Path) -> Key:
    found = os.stat(environment)
    return environment, found.st_dev, found.st_ino
