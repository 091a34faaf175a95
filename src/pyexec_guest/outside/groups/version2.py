"""Control groups of sandboxes, by the unified interface of the kernel (version 2): root's, or delegated.

    <group>/pyexec-outside/            the processes that were in the group before
    <group>/pyexec-<key>/              all sandboxes of one owner together
    <group>/pyexec-<key>/<name>/       one sandbox

Nobody keeps a list: what is there is read from the folders, under a lock while something is added. When memory runs
out the kernel kills one process and not the whole group (`memory.oom.group`): a guest whose child it was goes on.
"""

import os
import secrets
import signal
import time
from contextlib import suppress

from pyexec_guest.outside.groups import files
from pyexec_guest.outside.groups.delegation import CONTROLLERS
from pyexec_guest.outside.groups.model import GroupLimits, NoGroupsError, Spent, Usage, admit

PERIOD_MICROSECONDS = 100_000
_LEAST_QUOTA = 1000
_WEIGHT = 100
_LIMIT = "memory.max"
_SWAP = "memory.swap.max"
_PEAK = "memory.peak"
_MICROSECONDS = 1e6


class Group:
    """See `model.Group`."""

    def __init__(self, folder: str, limits: GroupLimits) -> None:
        self._folder = folder
        self._peak = 0
        self._kept = files.Kept(folder)
        self.limits = limits

    def open_entrances(self) -> "tuple[int, ...]":
        """See `model.Group`."""
        # Who opens it is who moves a process, and from where on it sees the tree (Linux 5.16): not the sandbox.
        return (files.open_entrance(self._folder),)

    def watch(self, first: int) -> None:
        """See `model.Group`: the kernel watches."""

    def limit_cpu(self) -> None:
        """See `model.Group`."""
        quota = max(_LEAST_QUOTA, int(self.limits.cpu * PERIOD_MICROSECONDS))
        files.write(self._folder, "cpu.max", f"{quota} {PERIOD_MICROSECONDS}")

    def weigh(self, share: float) -> None:
        """See `model.Group`."""
        self._kept.write("cpu.weight", max(1, int(_WEIGHT * share)))

    def give_way(self, yes: bool) -> None:  # noqa: FBT001 - see `model.Group`
        """See `model.Group`."""
        self._kept.write("cpu.idle", int(yes))

    def cpu_seconds(self) -> float:
        """See `model.Group`."""
        return self._kept.fields("cpu.stat", b"usage_usec")[0] / _MICROSECONDS

    def usage(self) -> Usage:
        """See `model.Group`."""
        out_of_memory = files.fields(self._folder, "memory.events").get("oom_kill", 0)
        cpu = files.fields(self._folder, "cpu.stat")
        return Usage(
            memory=files.number(self._folder, "memory.current"),
            peak_memory=self._highest(out_of_memory=bool(out_of_memory)),
            out_of_memory=out_of_memory,
            processes=files.number(self._folder, "pids.current"),
            cpu_seconds=cpu.get("usage_usec", 0) / _MICROSECONDS,
            user_seconds=cpu.get("user_usec", 0) / _MICROSECONDS,
            system_seconds=cpu.get("system_usec", 0) / _MICROSECONDS,
            throttled=cpu.get("nr_throttled", 0),
        )

    def spent(self) -> Spent:
        """See `model.Group`."""
        (out_of_memory,) = self._kept.fields("memory.events", b"oom_kill")
        together, user, system = self._kept.fields("cpu.stat", b"usage_usec", b"user_usec", b"system_usec")
        return Spent(
            peak_memory=self._highest(out_of_memory=bool(out_of_memory)),
            out_of_memory=out_of_memory,
            cpu_seconds=together / _MICROSECONDS,
            user_seconds=user / _MICROSECONDS,
            system_seconds=system / _MICROSECONDS,
        )

    def members(self) -> "list[int]":
        """See `model.Group`."""
        return files.members(self._folder)

    def kill(self) -> None:
        """See `model.Group`."""
        try:
            files.write(self._folder, "cgroup.kill", 1)
        except OSError:  # Before Linux 5.14 there is none.
            for pid in self.members():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """See `model.Group`."""
        self._kept.close()
        return files.remove(self._folder, time.monotonic() + files.REMOVE_SECONDS)

    def _highest(self, *, out_of_memory: bool) -> int:
        try:
            return self._kept.number(_PEAK)
        except OSError:  # Before Linux 5.19: what has been seen, and the limit where that was reached.
            memory = files.number(self._folder, "memory.current")
            self._peak = max(self._peak, memory, self.limits.memory if out_of_memory else 0)
            return self._peak


class Groups:
    """The control groups of all sandboxes of one owner.

    Args:
        key: Tells owners on one machine apart.
        budget: What the memory limits of all sandboxes may come to together, in bytes; also the limit of them all.
        group: The folder of the group that is divided (`delegation.divisible`).

    Raises:
        NoGroupsError: They cannot be had.
    """

    tier = "cgroup2"
    waived = ()

    def __init__(self, key: str, budget: int, group: str) -> None:
        self._budget = budget
        self._parent = os.path.join(group, files.PREFIX + key)
        try:
            with suppress(FileExistsError):
                os.mkdir(self._parent)
            self._write_limit(self._parent, budget)
            files.write(self._parent, "cgroup.subtree_control", " ".join(f"+{name}" for name in CONTROLLERS))
        except OSError as error:
            raise NoGroupsError(f"{error.filename or self._parent}: {error.strerror}") from error
        files.remove_abandoned((self._parent,))

    def create(self, limits: GroupLimits) -> Group:
        """See `model.Groups`."""
        folder = os.path.join(self._parent, secrets.token_hex(8))
        group = Group(folder, limits)
        with files.locked(self._parent):
            admit(files.promised(self._parent, _LIMIT), limits.memory, self._budget)
            os.mkdir(folder)
            try:
                self._write_limit(folder, limits.memory)
                # The first process is ours.
                files.write(folder, "pids.max", limits.processes + 1)
                # Whether it can be limited later is known now.
                files.write(folder, "cpu.max", f"max {PERIOD_MICROSECONDS}")
            except OSError:
                group.remove()
                raise
        return group

    def promised(self) -> int:
        """See `model.Groups`."""
        return sum(files.promised(self._parent, _LIMIT))

    def remove(self) -> bool:
        """See `model.Groups`."""
        return files.remove(self._parent, 0.0)

    @staticmethod
    def _write_limit(folder: str, memory: int) -> None:
        files.write(folder, _LIMIT, memory)
        with suppress(FileNotFoundError):  # A kernel without swap.
            files.write(folder, _SWAP, 0)
