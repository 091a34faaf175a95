"""The process that becomes bubblewrap: takes its plan, enters its control groups."""

import json
import os
from collections.abc import Sequence

from pyexec_guest.outside.outerwall import become
from pyexec_guest.outside.plan import Plan

_UMASK = 0o022


def main(plan_fd: int, info_fd: int, groups: "Sequence[int]") -> None:
    """Read a plan and become its wall; every descriptor that is not named here goes on to what is inside.

    Args:
        plan_fd: Where the plan is, as JSON.
        info_fd: Where bubblewrap tells its child's pid.
        groups: `cgroup.procs` files of the control groups to enter.
    """
    os.umask(_UMASK)
    with open(plan_fd, encoding="utf-8") as file:
        plan = Plan.from_json(json.load(file))
    for fd in groups:
        os.write(fd, b"0")
        os.close(fd)
    become(plan, info_fd)
