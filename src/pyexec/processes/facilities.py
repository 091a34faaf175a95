"""A program of its own that tries what keepers use to find and end processes; started with `python -I -m`.

It prints a JSON object of what works here, and leaves nothing behind.
"""

import json
import os
import signal
import sys
import time
from contextlib import suppress

from pyexec_guest.keeper import cgroup, linux
from pyexec_guest.keeper.tree import GROUP_PREFIX

ALARM_SECONDS = 10
_CHILD_SECONDS = 30


def main() -> None:
    """Try, and say what works."""
    answer = {"control_group": _kills_by_control_group(), "adopts_orphans": _adopts_orphans()}
    sys.stdout.write(json.dumps(answer))


def _kills_by_control_group() -> bool:
    """Have a child enter a control group of its own and a session of its own; end it by the group alone."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        folder = cgroup.create_and_enter(f"{GROUP_PREFIX}doctor-{os.getpid()}")
        os.write(writing, (folder or "").encode() + b"\n")
        time.sleep(_CHILD_SECONDS if folder else 0)
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        folder = pipe.readline().strip()
    killed = bool(folder) and cgroup.kill(folder)
    if folder and not killed:
        os.kill(pid, signal.SIGKILL)
    _pid, status = os.waitpid(pid, 0)
    if folder:
        cgroup.remove(folder)
    return killed and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _adopts_orphans() -> bool:
    """Have a child leave a child of its own behind; see whose it is then."""
    if not linux.adopt_orphans():
        return False
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        orphan = os.fork()
        if orphan == 0:
            os.setsid()
            os.close(writing)
            time.sleep(_CHILD_SECONDS)
            os._exit(0)
        os.write(writing, b"%d\n" % orphan)
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="ascii") as pipe:
        orphan = int(pipe.readline())
    os.waitpid(pid, 0)
    adopted = orphan in linux.descendants(os.getpid())
    with suppress(ProcessLookupError):
        os.kill(orphan, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(orphan, 0)
    return adopted


if __name__ == "__main__":
    signal.alarm(ALARM_SECONDS)
    main()
