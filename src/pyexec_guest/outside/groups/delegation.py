"""The part of the unified tree (version 2) that is ours to divide.

Processes are in its leaves only: before a group can give controllers on, those that are in it have to move into a leaf
of their own. That is done only where nobody else manages the group: systemd would take the controllers away again,
unless it has been told to delegate.
"""

import os
import time
from contextlib import suppress

from pyexec_guest.outside.groups import files
from pyexec_guest.outside.groups.model import NoGroupsError

CONTROLLERS = ("memory", "pids", "cpu")
LEAF = files.PREFIX + "outside"
"""Where processes are that were in the group itself."""

SYSTEMD = "/run/systemd/system"
MOVE_SECONDS = 5.0
_MARKS = ("user.delegate", "trusted.delegate")


def divisible(own: str, top: str, *, root: bool, systemd: bool) -> str:
    """Return the group below which sandboxes can be, with its controllers handed on to those in it.

    Args:
        own: The folder of this process's own group.
        top: Where the tree is mounted.
        root: Whether this is root.
        systemd: Whether systemd manages this machine.

    Raises:
        NoGroupsError: There is none.
    """
    group = _ours(own, top, root=root, systemd=systemd)
    try:
        available = files.read(group, "cgroup.controllers").split()
        missing = [name for name in CONTROLLERS if name not in available]
        if missing:
            raise NoGroupsError(f"the controllers {', '.join(missing)} are not handed on to {group}")
        with files.locked(group):
            _hand_on(group)
    except OSError as error:
        raise NoGroupsError(f"{error.filename or group}: {error.strerror}") from error
    return group


def _ours(own: str, top: str, *, root: bool, systemd: bool) -> str:
    if os.path.basename(own) == LEAF:  # Some owner before us has moved everybody there.
        return os.path.dirname(own)
    if not systemd or own == top or _is_marked(own):
        return own
    above = os.path.dirname(own)
    if _is_marked(above):  # `DelegateSubgroup=`
        return above
    # Before systemd 251 only root could see the mark.
    if root or any(_is_marked(folder) for folder in _up_to(above, top)):
        raise NoGroupsError(f"systemd has not delegated {own}")
    return own


def _up_to(folder: str, top: str) -> "list[str]":
    found = [folder]
    while found[-1] != top and found[-1] != os.path.dirname(found[-1]):
        found.append(os.path.dirname(found[-1]))
    return found


def _is_marked(folder: str) -> bool:
    for name in _MARKS:
        with suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _hand_on(group: str) -> None:
    """Have all that is in a group be given the controllers, and the processes of the group itself in a leaf."""
    handed = files.read(group, "cgroup.subtree_control").split()
    wanted = [name for name in CONTROLLERS if name not in handed]
    if not wanted:
        return
    # The one group that has no type is the machine's own, which alone may have processes all the same.
    if os.path.exists(os.path.join(group, "cgroup.type")):
        kind = files.read(group, "cgroup.type")
        if kind != "domain":
            raise NoGroupsError(f"{group} is {kind}, not domain")
        _move_down(group)
    files.write(group, "cgroup.subtree_control", " ".join(f"+{name}" for name in wanted))


def _move_down(group: str) -> None:
    leaf = os.path.join(group, LEAF)
    deadline = time.monotonic() + MOVE_SECONDS
    while processes := files.read(group, "cgroup.procs").split():
        with suppress(FileExistsError):
            os.mkdir(leaf)
        for pid in processes:
            with suppress(ProcessLookupError):
                files.write(leaf, "cgroup.procs", pid)
        if time.monotonic() > deadline:
            raise NoGroupsError(f"processes go on appearing in {group}")
