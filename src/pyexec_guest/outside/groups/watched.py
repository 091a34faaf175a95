"""Limits of sandboxes without control groups: somebody looks how much memory they use, and ends those above theirs.

That is no hard limit: memory can be taken faster than anybody looks, and processor time has no limit at all. What each
process may allocate, and how many there are, the kernel limits all the same.
"""

import signal
import threading
import time
from contextlib import suppress

from pyexec_guest.outside.groups.model import WAIVED, GroupLimits, Spent, Usage, admit
from pyexec_guest.outside.groups.sight import Sight, Times, machine_pids

BUSY_SECONDS = 0.1
IDLE_SECONDS = 0.5
CALM_LOOKS = 10
"""After so many looks at which nothing has happened, looking is rarer."""

FORCED_LOOKS = 20
LEAST_REST = 10.0
"""How many times longer than it looks the watcher rests, so that it never costs much itself."""

LONGEST_REST = 1.0


class Group:
    """See `model.Group`."""

    def __init__(self, limits: GroupLimits, owner: "Groups") -> None:
        self.limits = limits
        self._owner = owner
        self._lock = threading.Lock()
        self._first = -1
        self._sight: Sight | None = None
        self._times = Times()
        self._memory = 0
        self._peak = 0
        self._ended = 0
        self._calm = 0
        self._unseen = 0

    def open_entrances(self) -> "tuple[int, ...]":
        """See `model.Group`."""
        return ()

    def watch(self, first: int) -> None:
        """See `model.Group`; the descriptor is the caller's until `remove`."""
        self._sight = Sight(first)
        self._first = first
        self._owner.watch(self)

    def limit_cpu(self) -> None:
        """See `model.Group`: there is no limit."""

    def weigh(self, share: float) -> None:
        """See `model.Group`: all have the same."""

    def give_way(self, yes: bool) -> None:  # noqa: FBT001 - see `model.Group`
        """See `model.Group`: nobody does."""

    def cpu_seconds(self) -> float:
        """See `model.Group`: nobody gives way, so it does not matter."""
        return 0.0

    def usage(self) -> Usage:
        """See `model.Group`."""
        self.look(forced=True)
        with self._lock:
            user, system = self._times.user_seconds, self._times.system_seconds
            return Usage(
                memory=self._memory,
                peak_memory=self._peak,
                out_of_memory=self._ended,
                processes=len(self._times.processes),
                cpu_seconds=user + system,
                user_seconds=user,
                system_seconds=system,
                throttled=0,
            )

    def spent(self) -> Spent:
        """See `model.Group`."""
        usage = self.usage()
        return Spent(
            peak_memory=usage.peak_memory,
            out_of_memory=usage.out_of_memory,
            cpu_seconds=usage.cpu_seconds,
            user_seconds=usage.user_seconds,
            system_seconds=usage.system_seconds,
        )

    def members(self) -> "list[int]":
        """See `model.Group`."""
        with self._lock:
            return machine_pids(self._first) if self._sight is not None else []

    def kill(self) -> None:
        """See `model.Group`."""
        with self._lock:
            self._end()

    def remove(self) -> bool:
        """See `model.Group`."""
        self._owner.forget(self)
        with self._lock:
            if self._sight is not None:
                self._sight.close()
                self._sight = None
        return True

    def look(self, *, forced: bool = False) -> bool:
        """See what it uses, and end it when that is too much; tell whether it has been doing anything of late.

        Without any processor time there is nothing new to be seen: then it is not looked at closely.
        """
        with self._lock:
            if self._sight is None:
                return False
            times = self._sight.times()
            if not times.processes:
                self._memory = 0
                self._times = Times(frozenset(), self._times.user, self._times.system)
                return False
            changed = times != self._times
            # A process that nobody has waited for takes its time with it.
            user, system = max(times.user, self._times.user), max(times.system, self._times.system)
            self._times = Times(times.processes, user, system)
            self._calm = 0 if changed else self._calm + 1
            self._unseen += 1
            if changed or forced or self._unseen >= FORCED_LOOKS:
                self._unseen = 0
                self._memory = self._sight.memory()
                self._peak = max(self._peak, self._memory)
                if self._memory > self.limits.memory and not self._ended:
                    self._ended = 1
                    self._end()
            return self._calm < CALM_LOOKS

    def _end(self) -> None:
        if self._sight is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)


class Groups:
    """All sandboxes of one owner, watched by a thread while there are any.

    Args:
        budget: What the memory limits of all sandboxes may come to together, in bytes.
    """

    tier = "watched"
    waived = WAIVED

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._changed = threading.Condition()
        self._made: set[Group] = set()
        self._watched: set[Group] = set()
        self._watcher: threading.Thread | None = None

    def create(self, limits: GroupLimits) -> Group:
        """See `model.Groups`."""
        group = Group(limits, self)
        with self._changed:
            admit((one.limits.memory for one in self._made), limits.memory, self._budget)
            self._made.add(group)
        return group

    def promised(self) -> int:
        """See `model.Groups`."""
        with self._changed:
            return sum(one.limits.memory for one in self._made)

    def remove(self) -> bool:
        """See `model.Groups`."""
        with self._changed:
            return not self._made

    def watch(self, group: Group) -> None:
        """Look at a group from now on."""
        with self._changed:
            self._watched.add(group)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="sandbox-watcher", daemon=True)
                self._watcher.start()
            self._changed.notify()

    def forget(self, group: Group) -> None:
        """Count a group no more."""
        with self._changed:
            self._watched.discard(group)
            self._made.discard(group)

    def _watch(self) -> None:
        rest = BUSY_SECONDS
        while True:
            with self._changed:
                self._changed.wait(rest)  # Somebody new is looked at soon, whatever the others do.
                if not self._watched:
                    self._watcher = None
                    return
                watched = tuple(self._watched)
            started = time.monotonic()
            busy = [group.look() for group in watched]
            cost = time.monotonic() - started
            rest = max(BUSY_SECONDS if any(busy) else IDLE_SECONDS, min(LONGEST_REST, LEAST_REST * cost))
