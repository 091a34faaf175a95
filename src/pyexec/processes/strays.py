"""Ending what a killed keeper left behind."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from pyexec_guest.keeper import cgroup, linux

MARK = "PYEXEC_EXECUTION_ID"
ROUNDS = 50
PAUSE_SECONDS = 0.02


def end_strays(
    execution_id: str, *, group: str | None, pid: int | None, start_ticks: int, pipes: tuple[int, ...]
) -> int:
    """Kill every process that belongs to an execution without a keeper; return how many there were.

    They are known by their control group, by the program's pid and start time, by the mark in their environment, or
    by an output pipe of the execution that they hold.
    """
    ended: set[int] = set()
    for _round in range(ROUNDS):
        if group is not None and os.path.basename(group) == f"pyexec-{execution_id}":
            ended.update(cgroup.members(group))
            cgroup.kill(group)
        found = set(_strays(execution_id, pid, start_ticks, pipes))
        for stray in found:
            try:
                os.kill(stray, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                found = found - {stray}
        ended |= found
        if not found and not (group and cgroup.members(group)):
            break
        time.sleep(PAUSE_SECONDS)
    if group is not None:
        cgroup.remove(group)
    return len(ended)


def _strays(execution_id: str, main: int | None, start_ticks: int, pipes: tuple[int, ...]) -> Iterator[int]:
    mark = f"{MARK}={execution_id}".encode()
    links = {f"pipe:[{inode}]" for inode in pipes}
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        if pid == os.getpid():
            continue
        is_main = pid == main and linux.start_ticks(pid) == start_ticks
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
