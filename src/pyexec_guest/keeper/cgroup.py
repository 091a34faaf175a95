"""A control group of one's own (cgroup v2), where the system lets this user make one.

Nothing leaves a control group by forking, `setsid` or a cleared environment, and one write kills all that is in it.
"""

import os
import time
from contextlib import suppress

REMOVE_SECONDS = 0.5
ABANDONED_SECONDS = 60.0


def create_and_enter(name: str) -> "str | None":
    """Make a control group below this process's own and move in; return its folder, or None where none can be had."""
    own = _own_folder()
    if own is None:
        return None
    folder = os.path.join(own, name)
    try:
        os.mkdir(folder)
    except OSError:
        return None
    try:
        if os.access(os.path.join(folder, "cgroup.kill"), os.W_OK):
            _enter(folder)
            return folder
    except OSError:
        pass  # The kernel refuses: what is started is still known by its descent.
    os.rmdir(folder)
    return None


def members(folder: str) -> "list[int]":
    """Return the processes inside, those of control groups below too."""
    found: list[int] = []
    for root, _folders, _files in os.walk(folder):
        try:
            with open(os.path.join(root, "cgroup.procs"), encoding="ascii") as file:
                found += [int(line) for line in file]
        except OSError:
            continue
    return found


def kill(folder: str) -> bool:
    """Kill all that is inside; tell whether the group was there to be killed."""
    try:
        _write(os.path.join(folder, "cgroup.kill"), b"1")
    except OSError:
        return False
    return True


def remove_abandoned(prefix: str) -> None:
    """Remove groups of that name beside which their keeper was killed before anybody knew of them.

    The kernel removes none that has a process in it, and whoever makes one moves in at once.
    """
    own = _own_folder()
    if own is None:
        return
    for entry in os.scandir(own):
        with suppress(OSError):
            if entry.name.startswith(prefix) and time.time() - entry.stat().st_mtime > ABANDONED_SECONDS:
                os.rmdir(entry.path)


def leave(folder: str) -> bool:
    """Move this process out, to where the group was made; tell whether it is out."""
    try:
        _enter(os.path.dirname(folder))
    except OSError:
        return False
    return True


def remove(folder: str) -> None:
    """Remove the group and those below it, once they are empty."""
    deadline = time.monotonic() + REMOVE_SECONDS
    for root, _folders, _files in os.walk(folder, topdown=False):
        while True:
            try:
                os.rmdir(root)
            except FileNotFoundError:
                break
            except OSError:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.002)
                continue
            break


def _own_folder() -> "str | None":
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            relative = next((line.strip()[3:] for line in file if line.startswith("0::")), None)
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mounts = [line.split() for line in file]
    except OSError:
        return None
    if relative is None:
        return None
    for fields in mounts:
        if fields[fields.index("-") + 1] == "cgroup2":
            return os.path.join(fields[4], os.path.relpath(relative, fields[3]).lstrip("./"))
    return None


def _enter(folder: str) -> None:
    _write(os.path.join(folder, "cgroup.procs"), b"0")


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
