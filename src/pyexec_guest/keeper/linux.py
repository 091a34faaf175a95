"""What only Linux offers: adopting orphans, dying with the parent, reading the process tree."""

import ctypes
import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_prctl: "Any" = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def adopt_orphans() -> bool:
    """Make this process the new parent of descendants whose own parent dies; tell whether that could be had."""
    return _prctl is not None and _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def die_with_parent(signal_number: int, parent: int) -> None:
    """Have the kernel send this process a signal when its parent dies; for use between fork and exec."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)


@dataclass(frozen=True)
class Relative:
    """One descendant: its process group, and whether it still runs or only waits to be reaped."""

    pid: int
    group: int
    alive: bool


def descendants(root: int) -> "list[int]":
    """Return every living descendant of `root`, parents before children."""
    return [relative.pid for relative in family(root) if relative.alive]


def family(root: int) -> "list[Relative]":
    """Return every descendant of `root`, parents before children, those that nobody has reaped yet too."""
    children: dict[int, list[Relative]] = {}
    # Newest first: what forks all the time is gone again in a moment.
    for name in reversed(os.listdir("/proc")):
        if name.isdecimal() and (fields := stat_fields(int(name))):
            relative = Relative(int(name), int(fields[2]), fields[0] != "Z")
            children.setdefault(int(fields[1]), []).append(relative)
    found: list[Relative] = []
    frontier = children.get(root, [])
    while frontier:
        found += frontier
        frontier = [child for relative in frontier for child in children.get(relative.pid, ())]
    return found


def stat_fields(pid: int) -> "list[str]":
    """Return the fields of `/proc/<pid>/stat` from the state on (field 3), or nothing when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("ascii", "replace")
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def start_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; with the pid it names one process for ever."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields else 0


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return what tells one boot of the machine from the next: pids and the like mean nothing across it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def command_name(pid: int) -> str:
    """Return the short name of a process; never its arguments, which may hold a secret."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "?"


def out_of_memory_kills() -> int:
    """Return how many processes the kernel has killed for want of memory since boot."""
    try:
        with open("/proc/vmstat", encoding="ascii") as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0
