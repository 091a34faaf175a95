"""Everything an execution has started, and how to end it."""

import os
import secrets
import signal
import time
from contextlib import suppress

from pyexec_guest.keeper import cgroup, linux

GROUP_PREFIX = "pyexec-"
CHASE_SECONDS = 0.3


class Tree:
    """The processes of one execution, wherever they went: `setsid`, double forks and cleared environments included.

    Known by their control group where one could be made, else by descent: the keeper adopts what loses its parent.
    """

    def __init__(self) -> None:
        self._root = os.getpid()
        self._can_descend = linux.adopt_orphans()
        self.leader: int | None = None
        # The keeper itself lives in the group, and what it starts is born there: to move a process in takes the
        # kernel some 10 ms, and this way nobody waits for it.
        self.group = cgroup.create_and_enter(f"{GROUP_PREFIX}{secrets.token_hex(16)}")

    def group_members(self) -> "list[int]":
        """Return the living processes of the control group, the cheaper question; none where there is no group."""
        members = cgroup.members(self.group) if self.group is not None else []
        return [pid for pid in members if pid != self._root]

    def members(self) -> "list[int]":
        """Return the living processes."""
        found = linux.descendants(self._root) if self._can_descend else []
        return found + [pid for pid in self.group_members() if pid not in found]

    def signal(self, number: int) -> None:
        """Send a signal to each of them."""
        if self._can_descend:
            for pid in self.members():
                _send(pid, number)
        elif self.leader is not None:
            # Elsewhere than on Linux the process group is all there is to go by; `setsid` escapes it.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, number)

    def kill(self) -> None:
        """Kill them all; none can escape by forking meanwhile.

        Without a control group, what forks away into ever new sessions may take more than one call.
        """
        # From outside, one write kills the whole group, processes that became another user too.
        if self.group is not None and cgroup.leave(self.group):
            cgroup.kill(self.group)
        stopped: set[int] = set()
        groups: set[int] = set()
        deadline = time.monotonic() + CHASE_SECONDS
        while (fresh := self._unstopped(stopped, groups)) and time.monotonic() < deadline:
            # A stopped process starts no other. A process group is stopped as one: none of it can fork away meanwhile,
            # not even what is seen only by what it left to be reaped.
            for group in groups:
                _send_group(group, signal.SIGSTOP)
            for pid in fresh:
                _send(pid, signal.SIGSTOP)
            stopped |= fresh
        for group in groups:
            _send_group(group, signal.SIGKILL)
        for pid in stopped:
            _send(pid, signal.SIGKILL)
        if not self._can_descend:
            self.signal(signal.SIGKILL)

    def _unstopped(self, stopped: "set[int]", groups: "set[int]") -> "set[int]":
        """Return what of the tree is not in `stopped`, and note every new process group; empty when nothing is new."""
        family = linux.family(self._root) if self._can_descend else []
        # Whatever it starts has a session of its own, so that no process group but the keeper's is shared.
        new = {relative.group for relative in family} - groups - {os.getpgrp()}
        groups |= new
        pids = {relative.pid for relative in family if relative.alive or relative.group in new}
        return (pids | set(self.group_members())) - stopped

    def close(self) -> None:
        """Leave the control group and remove it."""
        if self.group is not None:
            cgroup.leave(self.group)
            cgroup.remove(self.group)


def _send(pid: int, number: int) -> None:
    # It may be gone already; or have become another user, whom only its control group can reach.
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _send_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
