"""Control groups of sandboxes, by the older interface of the kernel (version 1), which needs root.

    <controller>/<own group>/pyexec-<key>/            all sandboxes of one owner together
    <controller>/<own group>/pyexec-<key>/<name>/     one sandbox

Nobody keeps a list: what is there is read from the folders, under a lock while something is added.
"""

import fcntl
import os
import secrets
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

CONTROLLERS = ("memory", "pids", "cpu")
ACCOUNTING = "cpuacct"
REMOVE_SECONDS = 2.0
ABANDONED_SECONDS = 60.0
PERIOD_MICROSECONDS = 100_000
_PREFIX = "pyexec-"


class NoGroupsError(Exception):
    """Control groups cannot be had here; the message says why, as the end of a sentence."""


class NoRoomError(Exception):
    """With one more sandbox the limits of all together would come to more than there is."""

    def __init__(self, used: int, asked: int, budget: int) -> None:
        super().__init__(f"{used} + {asked} of {budget} bytes")
        self.used = used
        self.asked = asked
        self.budget = budget


@dataclass(frozen=True)
class GroupLimits:
    """What one sandbox may use: `memory` in bytes, `cpu` in processors' worth of time."""

    memory: int
    processes: int
    cpu: float


@dataclass(frozen=True)
class Usage:
    """What one sandbox uses and has used: bytes, and seconds of processor time.

    `out_of_memory` counts how often the kernel has killed a process of it because its limit was reached, `throttled`
    in how many periods it was given no more processor time.
    """

    memory: int
    peak_memory: int
    out_of_memory: int
    processes: int
    cpu_seconds: float
    throttled: int


class Group:
    """The control groups of one sandbox."""

    def __init__(self, folders: "dict[str, str]", limits: GroupLimits) -> None:
        self._folders = folders
        self.limits = limits

    def open_entrances(self) -> "tuple[int, ...]":
        """Return descriptors by which a process enters; the caller closes them."""
        return tuple(
            os.open(os.path.join(folder, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC)
            for folder in self._folders.values()
        )

    def limit_cpu(self) -> None:
        """Hold it to its share of the processors from now on; not before it has warmed up, which would take long."""
        quota = max(1000, int(self.limits.cpu * PERIOD_MICROSECONDS))
        _write(self._folders["cpu"], "cpu.cfs_period_us", PERIOD_MICROSECONDS)
        _write(self._folders["cpu"], "cpu.cfs_quota_us", quota)

    def usage(self) -> Usage:
        """Return what it uses and has used."""
        memory = self._folders["memory"]
        accounting = self._folders.get(ACCOUNTING)
        return Usage(
            memory=_number(memory, "memory.usage_in_bytes"),
            peak_memory=_number(memory, "memory.max_usage_in_bytes"),
            out_of_memory=_field(memory, "memory.oom_control", "oom_kill"),
            processes=_number(self._folders["pids"], "pids.current"),
            cpu_seconds=_number(accounting, "cpuacct.usage") / 1e9 if accounting else 0.0,
            throttled=_field(self._folders["cpu"], "cpu.stat", "nr_throttled"),
        )

    def members(self) -> "list[int]":
        """Return the processes in it, by their pids on this machine."""
        with suppress(OSError), open(os.path.join(self._folders["pids"], "cgroup.procs"), encoding="ascii") as file:
            return [int(line) for line in file]
        return []

    def kill(self) -> None:
        """Kill what is in it; for when there is no pidfd."""
        for pid in self.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """Remove it once it is empty, which it is soon after its end; tell whether it is gone. Blocks, bounded."""
        deadline = time.monotonic() + REMOVE_SECONDS
        gone = [_remove(folder, deadline) for folder in self._folders.values()]
        return all(gone)


class Groups:
    """The control groups of all sandboxes of one owner.

    Args:
        key: Tells owners on one machine apart.
        budget: What the memory limits of all sandboxes may come to together, in bytes; also the limit of them all.

    Raises:
        NoGroupsError: They cannot be had.
    """

    def __init__(self, key: str, budget: int) -> None:
        self._budget = budget
        mounted = _own_folders()
        missing = [name for name in CONTROLLERS if name not in mounted]
        if missing:
            raise NoGroupsError(f"the controllers {', '.join(missing)} of version 1 are not mounted here")
        wanted = (*CONTROLLERS, *((ACCOUNTING,) if ACCOUNTING in mounted else ()))
        self._parents = {name: os.path.join(mounted[name], _PREFIX + key) for name in wanted}
        try:
            for folder in set(self._parents.values()):
                with suppress(FileExistsError):
                    os.mkdir(folder)
            _write(self._parents["memory"], "memory.limit_in_bytes", budget)
        except OSError as error:
            raise NoGroupsError(f"{error.filename or 'the limit of all'}: {error.strerror}") from error
        self.remove_abandoned()

    def create(self, limits: GroupLimits) -> Group:
        """Make the control groups of one sandbox, with all limits but the one of the processors.

        Raises:
            NoRoomError: There is not enough memory for one more.
            OSError: The kernel refuses; nothing is left of it.
        """
        name = secrets.token_hex(8)
        group = Group({kind: os.path.join(parent, name) for kind, parent in self._parents.items()}, limits)
        with self._locked():
            used = sum(self._promised())
            if used + limits.memory > self._budget:
                raise NoRoomError(used, limits.memory, self._budget)
            try:
                self._make(name, limits)
            except OSError:
                group.remove()
                raise
        return group

    def promised(self) -> int:
        """Return what the memory limits of all sandboxes come to, in bytes."""
        return sum(self._promised())

    def remove_abandoned(self) -> None:
        """Remove empty groups that have been left by an owner which is gone."""
        for parent in set(self._parents.values()):
            for entry in os.scandir(parent):
                with suppress(OSError):
                    if entry.is_dir() and time.time() - entry.stat().st_mtime > ABANDONED_SECONDS:
                        os.rmdir(entry.path)

    def remove(self) -> bool:
        """Remove the group of all; tell whether it is gone, which it is not while there are sandboxes."""
        gone = [_remove(folder, 0.0) for folder in set(self._parents.values())]
        return all(gone)

    def _make(self, name: str, limits: GroupLimits) -> None:
        folders = {kind: os.path.join(parent, name) for kind, parent in self._parents.items()}
        for folder in set(folders.values()):
            os.mkdir(folder)
        memory = folders["memory"]
        _write(memory, "memory.limit_in_bytes", limits.memory)
        if os.path.exists(os.path.join(memory, "memory.memsw.limit_in_bytes")):
            _write(memory, "memory.memsw.limit_in_bytes", limits.memory)
        # The first process is ours.
        _write(folders["pids"], "pids.max", limits.processes + 1)

    def _promised(self) -> "Iterator[int]":
        for entry in os.scandir(self._parents["memory"]):
            if entry.is_dir():
                with suppress(OSError):
                    yield _number(entry.path, "memory.limit_in_bytes")

    @contextmanager
    def _locked(self) -> "Generator[None, None, None]":
        fd = os.open(self._parents["memory"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def _own_folders() -> "dict[str, str]":
    """Return the folder of this process's own group by controller (version 1)."""
    own: dict[str, str] = {}
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            _, kinds, path = line.rstrip("\n").split(":", 2)
            own.update(dict.fromkeys(kinds.split(","), path))
    found: dict[str, str] = {}
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            dash = fields.index("-")
            if fields[dash + 1] != "cgroup":
                continue
            for kind in fields[dash + 3].split(","):
                if kind in own and kind in (*CONTROLLERS, ACCOUNTING):
                    inside = os.path.relpath(own[kind], fields[3])
                    if not inside.startswith(".."):
                        found[kind] = os.path.normpath(os.path.join(fields[4], inside))
    return found


def _remove(folder: str, deadline: float) -> bool:
    while True:
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        else:
            return True


def _write(folder: str, name: str, value: int) -> None:
    fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(value).encode("ascii"))
    finally:
        os.close(fd)


def _number(folder: str, name: str) -> int:
    with open(os.path.join(folder, name), encoding="ascii") as file:
        return int(file.read())


def _field(folder: str, name: str, field: str) -> int:
    with open(os.path.join(folder, name), encoding="ascii") as file:
        for line in file:
            key, _, value = line.partition(" ")
            if key == field:
                return int(value)
    return 0
