"""Control groups of sandboxes, by the older interface of the kernel (version 1), which needs root.

    <controller>/<own group>/pyexec-<key>/            all sandboxes of one owner together
    <controller>/<own group>/pyexec-<key>/<name>/     one sandbox

Nobody keeps a list: what is there is read from the folders, under a lock while something is added.
"""

import os
import secrets
import signal
import time
from collections.abc import Mapping
from contextlib import suppress

from pyexec_guest.outside.groups import files
from pyexec_guest.outside.groups.model import GroupLimits, NoGroupsError, Spent, Usage, admit

CONTROLLERS = ("memory", "pids", "cpu")
ACCOUNTING = "cpuacct"
PERIOD_MICROSECONDS = 100_000
_LEAST_QUOTA = 1000
_SHARES = 1024
_LEAST_SHARES = 2
_LIMIT = "memory.limit_in_bytes"
_NANOSECONDS = 1e9


class Group:
    """See `model.Group`."""

    def __init__(self, folders: "dict[str, str]", limits: GroupLimits) -> None:
        self._folders = folders
        # Controllers that are mounted together have one folder.
        self._each = tuple(dict.fromkeys(folders.values()))
        self.limits = limits
        self._memory = files.Kept(folders["memory"])
        self._accounting = files.Kept(folders.get(ACCOUNTING))
        self._cpu = files.Kept(folders["cpu"])

    def open_entrances(self) -> "tuple[int, ...]":
        """See `model.Group`."""
        return tuple(files.open_entrance(folder) for folder in self._each)

    def watch(self, first: int) -> None:
        """See `model.Group`: the kernel watches."""

    def limit_cpu(self) -> None:
        """See `model.Group`."""
        quota = max(_LEAST_QUOTA, int(self.limits.cpu * PERIOD_MICROSECONDS))
        # The period is what it is from the start, unless this kernel was built otherwise.
        files.write(self._folders["cpu"], "cpu.cfs_period_us", PERIOD_MICROSECONDS)
        files.write(self._folders["cpu"], "cpu.cfs_quota_us", quota)

    def weigh(self, share: float) -> None:
        """See `model.Group`."""
        self._cpu.write("cpu.shares", max(_LEAST_SHARES, int(_SHARES * share)))

    def give_way(self, yes: bool) -> None:  # noqa: FBT001 - see `model.Group`
        """See `model.Group`."""
        self._cpu.write("cpu.idle", int(yes))

    def cpu_seconds(self) -> float:
        """See `model.Group`."""
        return self._accounting.number("cpuacct.usage") / _NANOSECONDS

    def usage(self) -> Usage:
        """See `model.Group`."""
        memory = self._folders["memory"]
        accounting = self._folders.get(ACCOUNTING)
        return Usage(
            memory=files.number(memory, "memory.usage_in_bytes"),
            peak_memory=files.number(memory, "memory.max_usage_in_bytes"),
            out_of_memory=files.fields(memory, "memory.oom_control").get("oom_kill", 0),
            processes=files.number(self._folders["pids"], "pids.current"),
            cpu_seconds=_seconds(accounting, "cpuacct.usage"),
            user_seconds=_seconds(accounting, "cpuacct.usage_user"),
            system_seconds=_seconds(accounting, "cpuacct.usage_sys"),
            throttled=files.fields(self._folders["cpu"], "cpu.stat").get("nr_throttled", 0),
        )

    def spent(self) -> Spent:
        """See `model.Group`."""
        memory, accounting = self._memory, self._accounting
        user, system = (accounting.number(name) / _NANOSECONDS for name in ("cpuacct.usage_user", "cpuacct.usage_sys"))
        return Spent(
            peak_memory=memory.number("memory.max_usage_in_bytes"),
            out_of_memory=memory.fields("memory.oom_control", b"oom_kill")[0],
            cpu_seconds=user + system or accounting.number("cpuacct.usage") / _NANOSECONDS,
            user_seconds=user,
            system_seconds=system,
        )

    def members(self) -> "list[int]":
        """See `model.Group`."""
        return files.members(self._folders["pids"])

    def kill(self) -> None:
        """See `model.Group`."""
        for pid in self.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """See `model.Group`."""
        self._memory.close()
        self._accounting.close()
        self._cpu.close()
        deadline = time.monotonic() + files.REMOVE_SECONDS
        gone = [files.remove(folder, deadline) for folder in self._each]
        return all(gone)


class Groups:
    """The control groups of all sandboxes of one owner.

    Args:
        key: Tells owners on one machine apart.
        budget: What the memory limits of all sandboxes may come to together, in bytes; also the limit of them all.
        own: The folder of this process's own group, by controller.

    Raises:
        NoGroupsError: They cannot be had.
    """

    tier = "cgroup1"
    waived = ()

    def __init__(self, key: str, budget: int, own: "Mapping[str, str]") -> None:
        self._budget = budget
        missing = [name for name in CONTROLLERS if name not in own]
        if missing:
            raise NoGroupsError(f"the controllers {', '.join(missing)} of version 1 are not mounted here")
        wanted = (*CONTROLLERS, *((ACCOUNTING,) if ACCOUNTING in own else ()))
        self._parents = {name: os.path.join(own[name], files.PREFIX + key) for name in wanted}
        try:
            for folder in set(self._parents.values()):
                with suppress(FileExistsError):
                    os.mkdir(folder)
            files.write(self._parents["memory"], _LIMIT, budget)
        except OSError as error:
            raise NoGroupsError(f"{error.filename or 'the limit of all'}: {error.strerror}") from error
        files.remove_abandoned(set(self._parents.values()))

    def create(self, limits: GroupLimits) -> Group:
        """See `model.Groups`."""
        name = secrets.token_hex(8)
        group = Group({kind: os.path.join(parent, name) for kind, parent in self._parents.items()}, limits)
        with files.locked(self._parents["memory"]):
            admit(files.promised(self._parents["memory"], _LIMIT), limits.memory, self._budget)
            try:
                self._make(name, limits)
            except OSError:
                group.remove()
                raise
        return group

    def promised(self) -> int:
        """See `model.Groups`."""
        return sum(files.promised(self._parents["memory"], _LIMIT))

    def remove(self) -> bool:
        """See `model.Groups`."""
        gone = [files.remove(folder, 0.0) for folder in set(self._parents.values())]
        return all(gone)

    def _make(self, name: str, limits: GroupLimits) -> None:
        folders = {kind: os.path.join(parent, name) for kind, parent in self._parents.items()}
        for folder in set(folders.values()):
            os.mkdir(folder)
        memory = folders["memory"]
        files.write(memory, _LIMIT, limits.memory)
        if os.path.exists(os.path.join(memory, "memory.memsw.limit_in_bytes")):
            files.write(memory, "memory.memsw.limit_in_bytes", limits.memory)
        # The first process is ours.
        files.write(folders["pids"], "pids.max", limits.processes + 1)


def _seconds(folder: "str | None", name: str) -> float:
    if folder is None:
        return 0.0
    try:
        return files.number(folder, name) / _NANOSECONDS
    except OSError:
        return 0.0
