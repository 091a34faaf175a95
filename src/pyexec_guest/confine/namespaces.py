"""Namespaces of one's own, and what is mounted in them."""

import os
import socket
from collections.abc import Iterable

from pyexec_guest.confine.kernel import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    unshare,
)

HOSTNAME = "sandbox"


def leave_all_but_user() -> None:
    """Enter new mount, ipc, uts, network and cgroup namespaces, whose owner is still the user namespace outside.

    Raises:
        OSError: The kernel refuses; the process must not go on.
    """
    unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP)
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    socket.sethostname(HOSTNAME)


def mount_own_processes() -> None:
    """Have /proc show nothing but the processes of this pid namespace.

    Raises:
        OSError: The kernel refuses; the process must not go on.
    """
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid")


def mount_memory(folder: str, *, size: int, files: int, mode: int, owner: int, programs: bool) -> None:
    """Mount an empty file system in memory.

    Args:
        folder: Where; it must be there.
        size: The most bytes it holds.
        files: The most files and folders it holds.
        mode: Permissions of the folder.
        owner: The user (and group) it belongs to.
        programs: Whether what is in it may be run.

    Raises:
        OSError: The kernel refuses; the process must not go on.
    """
    flags = MS_NOSUID | MS_NODEV | (0 if programs else MS_NOEXEC)
    options = f"size={size},nr_inodes={files},mode={mode:o},uid={owner},gid={owner}"
    mount("tmpfs", folder, "tmpfs", flags, options)


def mount_names(folder: str, places: "Iterable[str]") -> None:
    """Mount a small file system in memory with nothing but a few empty folders in it.

    Raises:
        OSError: The kernel refuses; the process must not go on.
    """
    mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,nr_inodes=128,mode=755")
    for place in places:
        os.mkdir(place, 0o755)


def keep_as_it_is(folder: str) -> None:
    """Have nothing be made or removed any more in a file system in memory.

    Raises:
        OSError: The kernel refuses; the process must not go on.
    """
    mount("none", folder, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)


def become_only_user(inside: int) -> None:
    """Enter a user namespace in which this user is the only one there is, as `inside`.

    What the other namespaces hold cannot be changed from then on: they belong to the one that is left.

    Raises:
        OSError: The kernel refuses; the process must not go on.
    """
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    write_map(inside, user, inside, group)


def write_map(user_inside: int, user: int, group_inside: int, group: int) -> None:
    """Say who is in the user namespace that this process has just made: this user and this group.

    Raises:
        OSError: The kernel refuses.
    """
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user_inside} {user} 1")
    _write("/proc/self/gid_map", f"{group_inside} {group} 1")


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode("ascii"))
    finally:
        os.close(fd)
