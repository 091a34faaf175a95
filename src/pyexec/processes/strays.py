"""Ending what a killed keeper left behind."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyexec_guest.keeper import cgroup, linux
from pyexec_guest.keeper.tree import GROUP_PREFIX

MARK = "PYEXEC_EXECUTION_ID"
ROUNDS = 50
PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a keeper noted about the program it started, by which its processes are known again."""

    boot: str
    group: str | None
    pid: int
    start_ticks: int
    pipes: tuple[int, ...]


NO_TRACE = Trace(boot="", group=None, pid=0, start_ticks=0, pipes=())


def end_strays(execution_id: str, trace: Trace | None) -> int:
    """Kill every process that belongs to an execution without a keeper; return how many there were.

    They are known by their control group, by the program's pid and start time, by the mark in their environment, or
    by an output pipe of the execution that they hold. Across a restart of the machine only the mark means anything.
    """
    if trace is None or trace.boot != linux.boot_id():
        trace = NO_TRACE
    group = trace.group if trace.group and Path(trace.group).name.startswith(GROUP_PREFIX) else None
    ended: set[int] = set()
    for _round in range(ROUNDS):
        members = cgroup.members(group) if group else []
        if group:
            cgroup.kill(group)
        strays = {pid for pid in _strays(execution_id, trace) if _kill(pid)}
        ended.update(members, strays)
        if not members and not strays:
            break
        time.sleep(PAUSE_SECONDS)
    if group:
        cgroup.remove(group)
    return len(ended)


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _strays(execution_id: str, trace: Trace) -> Iterator[int]:
    mark = f"{MARK}={execution_id}".encode()
    links = {f"pipe:[{inode}]" for inode in trace.pipes}
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        state = linux.stat_fields(pid)[:1]
        if pid == os.getpid() or state in ([], ["Z"]):
            continue
        is_main = pid == trace.pid and linux.start_ticks(pid) == trace.start_ticks
        if is_main or _has_mark(folder, mark) or _holds(folder, links):
            yield pid


def _has_mark(folder: Path, mark: bytes) -> bool:
    try:
        return mark in (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _holds(folder: Path, links: set[str]) -> bool:
    try:
        return any(os.readlink(fd) in links for fd in (folder / "fd").iterdir())
    except OSError:
        return False
