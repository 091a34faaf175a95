"""Which control groups there are."""

import os

from pyexec_guest.outside.groups import delegation, version1, version2
from pyexec_guest.outside.groups.model import Groups, NoGroupsError
from pyexec_guest.outside.groups.mounts import OwnGroups, own_groups

_ROOT_REMEDY = (
    "Start pyexec in a group of its own that systemd delegates: `Delegate=yes` in its unit, or "
    "`systemd-run --scope -p Delegate=yes pyexec …`. In a container, mount /sys/fs/cgroup so that it can be written."
)
_USER_REMEDY = (
    "With control groups of version 2, start pyexec in a group that systemd delegates to you: `Delegate=yes` in its "
    "unit, or `systemd-run --user --scope -p Delegate=yes pyexec …` (`loginctl enable-linger` where nobody is logged "
    "in; older systemd hands on cpu only with `Delegate=cpu memory pids` for user@.service). "
    "With version 1, run it as root."
)


def find_groups(key: str, budget: int) -> Groups:
    """Return the control groups of an owner's sandboxes: of version 2 where they can be had, else of version 1.

    This process may be in another group afterwards, together with all that were in the same.

    Args:
        key: Tells owners on one machine apart.
        budget: What the memory limits of all sandboxes may come to together, in bytes.

    Raises:
        NoGroupsError: There are none; says why there are none of either.
    """
    root = os.geteuid() == 0
    own = own_groups()
    reasons: list[str] = []
    try:
        return _version2(key, budget, own, root=root)
    except NoGroupsError as error:
        reasons.append(f"version 2: {error}")
    try:
        return version1.Groups(key, budget, own.version1)
    except NoGroupsError as error:
        reasons.append(f"version 1: {error}")
    raise NoGroupsError("; ".join(reasons), _ROOT_REMEDY if root else _USER_REMEDY)


def _version2(key: str, budget: int, own: OwnGroups, *, root: bool) -> Groups:
    if own.version2 is None:
        raise NoGroupsError("not mounted here")
    systemd = os.path.isdir(delegation.SYSTEMD)
    group = delegation.divisible(own.version2, own.version2_top, root=root, systemd=systemd)
    return version2.Groups(key, budget, group)
