"""Sandboxes by the environment they have: a fork server for each, started when it is first asked for."""

import logging
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyexec.domain.errors import WallUnavailableError
from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.contents import USERS, plan_for
from pyexec.walls.bubblewrap.folders import Folder, shared
from pyexec.walls.bubblewrap.inside import Ahead, Inside
from pyexec.walls.bubblewrap.leftovers import OuterWalls
from pyexec.walls.bubblewrap.limits import groups_for
from pyexec.walls.bubblewrap.orders import KeeperOrders
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec.walls.bubblewrap.sandboxes import Sandboxes
from pyexec.walls.bubblewrap.turnstile import Admission
from pyexec.walls.bubblewrap.users import SandboxUsers, given
from pyexec.walls.bubblewrap.workspaces import Workspaces

MOST_FAMILIES = 4
IDLE_SECONDS = 600.0
"""How long a fork server stays that nobody asks for a sandbox; that of the usual environment always does."""

UNUSED_SECONDS = 10.0
"""A fork server that somebody wanted something of more recently does not make room."""

GONE_SECONDS = 3.0
GONE_LOOK_SECONDS = 0.02
OUTER = "outer-walls"
COUNTER = "users"

# Where an environment lies, and which folder that is: one that was made anew in its place is another.
Key = tuple[Path, int, int]


InsideOf = Callable[[Path, Ahead], Inside]
"""Tells what is inside the wall for an environment; raises `WallUnavailableError` where it can be of no use there."""

_log = logging.getLogger(__name__)


@dataclass
class _Family:
    """A fork server and its sandboxes; `taking` says how many are just asking for one, for whom it has to stay."""

    sandboxes: Sandboxes
    used_at: float
    taking: int = 0


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
        self._starting: set[Path] = set()
        self._families: dict[Key, _Family] = {}
        self._retired: list[Sandboxes] = []
        self._usual: Path | None = None

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
        with self._family(environment) as sandboxes:
            box = sandboxes.sandbox(folders=folders, had=room.had)
        box.on_closed = room.gone
        return box

    def keep(self, environment: Path) -> None:
        """Take an environment for the usual one, whose fork server stays however long nobody asks for it."""
        self._usual = environment

    def is_starting(self, environment: Path) -> bool:
        """Tell whether the fork server of an environment is just being started."""
        return environment in self._starting

    def has_idle(self) -> bool:
        """Tell whether there is something for `end_idle` to do."""
        with self._lock:
            return bool(self._idle() or self._retired)

    def end_idle(self) -> None:
        """End the fork servers that nobody has asked for long; sandboxes that are out live on. Blocks."""
        with self._lock:
            idle = [self._families.pop(key) for key in self._idle()]
        self._retire(idle)

    def give_up_ready(self) -> bool:
        """End one of the sandboxes that are kept ready; tell whether there was one. Blocks for some milliseconds."""
        with self._lock:
            families = sorted(self._families.values(), key=lambda family: family.used_at)
        return any(family.sandboxes.give_way() for family in families)

    def give_up_unused(self) -> bool:
        """End a fork server that nobody has a sandbox of; tell whether there was one. Blocks for some 100 ms."""
        now = time.monotonic()
        with self._lock:
            old = {key: one for key, one in self._families.items() if now - one.used_at > UNUSED_SECONDS}
        # Asked without the lock: one whose fork server is just being started does not answer at once.
        unused = [key for key, one in old.items() if not one.sandboxes.is_in_use()]
        # The usual one only where there is no other.
        for key in sorted(unused, key=lambda key: (key[0] == self._usual, old[key].used_at)):
            family = old[key]
            with self._lock:
                if self._families.get(key) is not family or family.taking or family.used_at > now:
                    continue
                del self._families[key]
            self._end_unused(family)
            return True
        return False

    def sandbox_at_once(self, environment: Path, folders: Sequence[Folder], room: Admission) -> Box | None:
        """Return a sandbox like `sandbox`, if one is ready; never blocks for long."""
        try:
            key = _key(environment)
        except OSError:
            return None
        with self._lock:
            family = self._families.get(key)
            if family is None:
                return None
            family.taking += 1
        try:
            box = family.sandboxes.sandbox_at_once(folders)
        finally:
            with self._lock:
                family.taking -= 1
                family.used_at = time.monotonic()
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

    @contextmanager
    def _family(self, environment: Path) -> Generator[Sandboxes]:
        """Yield what makes sandboxes for an environment; it is not ended meanwhile."""
        family = self._taken(environment)
        try:
            yield family.sandboxes
        finally:
            with self._lock:
                family.taking -= 1
                family.used_at = time.monotonic()
                surplus = self._surplus()
            self._retire(surplus)

    def _taken(self, environment: Path) -> _Family:
        key = _key(environment)
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                family = self._families.get(key)
                if family is not None:
                    family.taking += 1
                    return family
            family = _Family(self._started(environment), time.monotonic(), taking=1)
            with self._lock:
                self._families[key] = family
            return family

    def _started(self, environment: Path) -> Sandboxes:
        usual = environment == self._usual
        self._starting.add(environment)
        try:
            return self._warmed(environment, "told" if usual else "found")
        except WallUnavailableError as error:
            if usual:
                raise
            # Something that somebody has put into it may start threads: then its modules are not imported ahead.
            _log.warning("%s is tried without importing ahead: %s", environment, error.sentence())
            return self._warmed(environment, "nothing")
        finally:
            self._starting.discard(environment)

    def _warmed(self, environment: Path, ahead: Ahead) -> Sandboxes:
        orders = self._orders
        plan = plan_for(self._inside_of(environment, ahead), self._bwrap, self._users)
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

    # -- ending those that are not needed --------------------------------------------------------------------------

    def _end_unused(self, family: _Family) -> None:
        until = time.monotonic() + GONE_SECONDS
        self._retire([family])
        while family.sandboxes.is_inhabited() and time.monotonic() < until:
            time.sleep(GONE_LOOK_SECONDS)

    def _retire(self, families: Sequence[_Family]) -> None:
        for family in families:
            family.sandboxes.retire()
        with self._lock:
            before = [*self._retired, *(family.sandboxes for family in families)]
            self._retired = [one for one in before if one.is_inhabited()]

    def _surplus(self) -> list[_Family]:
        """Take out those that have not been used for the longest time, where there are too many."""
        others = [key for key in self._by_age() if key[0] != self._usual]
        return [self._families.pop(key) for key in others[: max(0, len(self._families) - MOST_FAMILIES)]]

    def _idle(self) -> list[Key]:
        long_ago = time.monotonic() - IDLE_SECONDS
        return [key for key in self._by_age() if key[0] != self._usual and self._families[key].used_at < long_ago]

    def _by_age(self) -> list[Key]:
        """Return those that nobody is just asking, beginning with the one that has not been used for the longest."""
        free = [key for key, family in self._families.items() if not family.taking]
        return sorted(free, key=lambda key: self._families[key].used_at)


def _key(environment: Path) -> Key:
    found = os.stat(environment)
    return environment, found.st_dev, found.st_ino
