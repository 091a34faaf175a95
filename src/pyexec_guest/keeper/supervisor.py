"""Running one program to the end of its whole tree, and ending it when it must."""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyexec_guest.keeper import child as children
from pyexec_guest.keeper import linux
from pyexec_guest.keeper.ahead import ForkedAhead
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.keeper.output import OutputPump
from pyexec_guest.keeper.tree import Tree

STEP_SECONDS = 0.8
NATURAL_END_SECONDS = 0.25
LEFTOVER_TERM_SECONDS = 0.5
KILL_SECONDS = 5.0
LOOK_SECONDS = 0.01
LEFTOVERS_NAMED = 50


@dataclass
class StopRequest:
    """Whether somebody wants the execution to end, how, and why; a kill overrides a cancel, nothing a kill."""

    asked: bool = False
    kill: bool = False
    reason: "str | None" = None

    def ask(self, reason: str, *, kill: bool = False) -> None:
        """Note a request."""
        if not self.asked or (kill and not self.kill):
            self.asked, self.kill, self.reason = True, kill, reason


@dataclass
class Ending:
    """How the run of a program came to its end: `cause` is None when it ended by itself."""

    cause: "str | None" = None
    reason: "str | None" = None
    stopped_by: "str | None" = None
    leftovers: "list[dict[str, Any]]" = field(default_factory=list)
    exit_code: "int | None" = None
    signal: "str | None" = None


@dataclass
class Usage:
    """What the programs and their descendants used, as the kernel tells when they are reaped."""

    user_seconds: float = 0.0
    system_seconds: float = 0.0
    peak_rss_bytes: int = 0


class Supervisor:
    """Runs programs one after the other; everything they start belongs to one tree.

    `ahead`, if any, becomes the first of them.
    """

    def __init__(
        self,
        loop: Loop,
        tree: Tree,
        stop: StopRequest,
        on_step: "Callable[[str, str | None], None]",
        ahead: "ForkedAhead | None",
    ) -> None:
        self.usage = Usage()
        self._ahead = ahead
        self._loop = loop
        self._tree = tree
        self._stop = stop
        self._on_step = on_step
        self._child: children.Child | None = None
        self._has_children = False
        self._hunting = False

    def run(
        self,
        argv: "Sequence[str]",
        *,
        cwd: str,
        env: "Mapping[str, str]",
        stdin: "str | None",
        deadline: "float | None",
        pumps: "tuple[OutputPump, OutputPump]",
        on_start: "Callable[[children.Child], None] | None" = None,
        inherited: "int | None" = None,
    ) -> Ending:
        """Run a program until it and all that it started have ended, with their output read.

        Raises:
            StartError: It could not be started.
        """
        child = self._start_from_ahead(argv, cwd, env, stdin) if inherited is None else None
        if child is None:
            self.let_go()
            child = children.start(argv, cwd=cwd, env=env, stdin=stdin, inherited=inherited)
        self._child = child
        self._tree.leader = child.pid
        self._has_children = True
        for pump, fd in zip(pumps, (child.stdout, child.stderr), strict=True):
            pump.attach(fd)
        if on_start is not None:
            on_start(child)
        ending = Ending()
        self._loop.run_until(lambda: child.exited or self._stop.asked, deadline)
        if not child.exited:
            if self._stop.asked:
                ending.cause, ending.reason = "cancelled", self._stop.reason
            else:
                ending.cause = "timed_out"
            self._escalate(child, ending)
        self._end_leftovers(ending)
        for pump in pumps:
            pump.drain()
        # Not even SIGKILL ends a process that waits for a broken device; its code is what it will be.
        ending.exit_code, ending.signal = children.exit_of(signal.SIGKILL if child.status is None else child.status)
        return ending

    def let_go(self) -> None:
        """Do without the process that was forked ahead: nothing is started, or not soon."""
        if self._ahead is not None:
            self._ahead.release()
            self._ahead = None

    def _start_from_ahead(
        self, argv: "Sequence[str]", cwd: str, env: "Mapping[str, str]", stdin: "str | None"
    ) -> "children.Child | None":
        ahead, self._ahead = self._ahead, None
        return None if ahead is None else ahead.become(argv, cwd=cwd, env=env, stdin=stdin)

    def reap(self) -> None:
        """Take note of every child that has ended."""
        while True:
            try:
                if self._hunting and (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)):
                    # What it forked on its way out is still of its group; not yet reaped, the number means that group.
                    _signal_group(dead.si_pid, signal.SIGKILL)
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._has_children = False
                return
            if pid == 0:
                return
            if self._ahead is not None and pid == self._ahead.pid:
                self._ahead.reaped = True
                continue
            if self._child is not None and pid == self._child.pid:
                self._child.status = status
            self.usage.user_seconds += usage.ru_utime
            self.usage.system_seconds += usage.ru_stime
            self.usage.peak_rss_bytes = max(self.usage.peak_rss_bytes, children.peak_rss_bytes(usage.ru_maxrss))

    def _escalate(self, child: children.Child, ending: Ending) -> None:
        """Interrupt, ask, kill; each step is given a moment, and all output keeps being read."""
        steps: tuple[tuple[int, Callable[[int], None]], ...] = (
            (signal.SIGINT, lambda number: _signal_group(child.pid, number)),
            (signal.SIGTERM, self._tree.signal),
        )
        for number, send in steps:
            if self._stop.kill:
                break
            self._note(number, ending)
            send(number)
            self._loop.run_until(lambda: child.exited or self._stop.kill, time.monotonic() + STEP_SECONDS)
            if child.exited:
                return
        self._note(signal.SIGKILL, ending)
        self._tree.kill()
        _signal_group(child.pid, signal.SIGKILL)
        self._loop.run_until(lambda: child.exited, time.monotonic() + KILL_SECONDS)

    def _end_leftovers(self, ending: Ending) -> None:
        """End what the program left behind, so that nothing writes after the outcome is final."""
        if self._until_empty(0.0 if ending.cause else NATURAL_END_SECONDS):
            return
        if ending.cause is None:
            left = self._tree.members()[:LEFTOVERS_NAMED]
            ending.leftovers = [{"pid": pid, "command": linux.command_name(pid)} for pid in left]
        self._tree.signal(signal.SIGTERM)
        if self._until_empty(LEFTOVER_TERM_SECONDS):
            return
        deadline = time.monotonic() + KILL_SECONDS
        self._hunting = hasattr(os, "waitid")
        while time.monotonic() < deadline:
            self._tree.kill()
            if self._until_empty(0.1):
                break
        self._hunting = False

    def _until_empty(self, seconds: float) -> bool:
        return self._loop.run_until(self._is_empty, time.monotonic() + seconds, LOOK_SECONDS)

    def _is_empty(self) -> bool:
        # Where orphans are adopted, no children means no descendants: no need to look through the processes.
        return not self._has_children and not self._tree.group_members()

    def _note(self, number: int, ending: Ending) -> None:
        ending.stopped_by = children.signal_name(number)
        self._on_step("stopping", ending.stopped_by)


def _signal_group(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
