"""Limits of sandboxes as a whole, whatever holds them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

WAIVED = ("memory of a sandbox as a whole", "processor time")
"""What is not held hard where there are no control groups."""


class NoGroupsError(Exception):
    """Control groups cannot be had here; the message says why, as the end of a sentence.

    `remedy` says what to do about it, in whole sentences.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class NoRoomError(Exception):
    """With one more sandbox the limits of all together would come to more than there is."""

    def __init__(self, used: int, asked: int, budget: int) -> None:
        super().__init__(f"{used} + {asked} of {budget} bytes")
        self.used = used
        self.asked = asked
        self.budget = budget


def admit(promised: "Iterable[int]", asked: int, budget: int) -> None:
    """See that one more limit fits beside those that are promised; bytes.

    Raises:
        NoRoomError: It does not.
    """
    used = sum(promised)
    if used + asked > budget:
        raise NoRoomError(used, asked, budget)


@dataclass(frozen=True)
class GroupLimits:
    """What one sandbox may use: `memory` in bytes, `cpu` in processors' worth of time."""

    memory: int
    processes: int
    cpu: float


@dataclass(frozen=True)
class Usage:
    """What one sandbox uses and has used: bytes, and seconds of processor time.

    `out_of_memory` counts how often a process of it was killed because its limit was reached, `throttled` in how many
    periods it was given no more processor time. `user_seconds` and `system_seconds` are 0 where their sum alone is
    known.
    """

    memory: int
    peak_memory: int
    out_of_memory: int
    processes: int
    cpu_seconds: float
    user_seconds: float
    system_seconds: float
    throttled: int


@dataclass(frozen=True)
class Spent:
    """What of `Usage` only ever grows."""

    peak_memory: int
    out_of_memory: int
    cpu_seconds: float
    user_seconds: float
    system_seconds: float


class Group(Protocol):
    """What holds one sandbox to its limits."""

    limits: GroupLimits

    def open_entrances(self) -> "tuple[int, ...]":
        """Return descriptors by which a process enters; the caller closes them."""
        ...

    def watch(self, first: int) -> None:
        """Be told the pidfd of the first process of a sandbox that has come up, before anything is run in it.

        Raises:
            OSError: It cannot be held to its limits; nothing may run in it.
        """
        ...

    def limit_cpu(self) -> None:
        """Hold it to its share of the processors from now on; not before it has warmed up, which would take long."""
        ...

    def weigh(self, share: float) -> None:
        """Give it this many times, at most 100, what others get where there is not enough processor time for all.

        Raises:
            OSError: It cannot be given that.
        """
        ...

    def give_way(self, yes: bool) -> None:  # noqa: FBT001 - there is nothing else to say
        """Have it run only where nobody else wants to who does not give way, and be stopped at once then; or no more.

        All that give way have the same. One that does so no more has as much as others: its weight is forgotten.

        Raises:
            OSError: That cannot be had: before Linux 5.15, or where there are no control groups.
        """
        ...

    def cpu_seconds(self) -> float:
        """Return the processor time it has used up to now."""
        ...

    def usage(self) -> Usage:
        """Return what it uses and has used."""
        ...

    def spent(self) -> Spent:
        """Return what it has used up to now, for which less has to be looked at."""
        ...

    def members(self) -> "list[int]":
        """Return the processes in it, by their pids on this machine."""
        ...

    def kill(self) -> None:
        """Kill what is in it; for when there is no pidfd."""
        ...

    def remove(self) -> bool:
        """Remove it once it is empty, which it is soon after its end; tell whether it is gone. Blocks, bounded."""
        ...


class Groups(Protocol):
    """What holds all sandboxes of one owner to their limits."""

    @property
    def tier(self) -> str:
        """How they are held: `cgroup2`, `cgroup1` or `watched`."""
        ...

    @property
    def waived(self) -> "tuple[str, ...]":
        """What its sandboxes are not held to hard; every result has to tell."""
        ...

    def create(self, limits: GroupLimits) -> Group:
        """Make the group of one sandbox, with all limits but the one of the processors.

        Raises:
            NoRoomError: There is not enough memory for one more.
            OSError: The kernel refuses; nothing is left of it.
        """
        ...

    def promised(self) -> int:
        """Return what the memory limits of all sandboxes come to, in bytes."""
        ...

    def remove(self) -> bool:
        """Let go of what all have in common; tell whether it is gone, which it is not while there are sandboxes."""
        ...
