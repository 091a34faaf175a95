"""A thread that answers others is woken soon; what it starts is scheduled as anything else."""

import json
import platform
import subprocess
import sys

import pytest

from pyexec.processes.promptness import SLICE_NANOSECONDS

KERNEL = tuple(int(part) for part in platform.release().split(".")[:2] if part.isdigit())

SCRIPT = """
import ctypes, json, os, platform, subprocess, sys, threading
from pyexec.processes.promptness import be_prompt
NUMBER = {"x86_64": 315, "aarch64": 275}[platform.machine()]
def slice_of(pid=0):
    attributes = (ctypes.c_uint64 * 6)()
    assert ctypes.CDLL(None).syscall(NUMBER, pid, attributes, 48, 0) == 0
    return attributes[3]  # `sched_runtime` of sched_getattr(2).
usual = slice_of()
if len(sys.argv) > 1:
    os.setpriority(os.PRIO_PROCESS, 0, int(sys.argv[1]))
be_prompt()
own, others = slice_of(), []
thread = threading.Thread(target=lambda: others.append(slice_of()))
thread.start()
thread.join()
with subprocess.Popen(["sleep", "60"]) as child:
    others.append(slice_of(child.pid))
    child.kill()
print(json.dumps([own, [one == usual for one in others], os.getpriority(os.PRIO_PROCESS, 0)]))
"""


def outcome(*arguments: str) -> list[object]:
    """Return the slice of a thread that is prompt, whether what it starts has the usual one, and its niceness."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], check=True, capture_output=True, timeout=60)
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(sys.platform != "linux" or KERNEL < (6, 12), reason="this kernel has one slice for all")
def test_a_prompt_thread_runs_for_moments_and_what_it_starts_as_anything_else() -> None:
    assert outcome() == [SLICE_NANOSECONDS, [True, True], 0]


@pytest.mark.skipif(sys.platform != "linux" or KERNEL < (6, 12), reason="this kernel has one slice for all")
def test_a_server_that_is_to_stand_back_keeps_its_niceness() -> None:
    assert outcome("5") == [SLICE_NANOSECONDS, [True, True], 5]


@pytest.mark.root
def test_a_server_that_comes_first_already_stays_as_it_is() -> None:
    own, _others, nice = outcome("-5")
    assert own != SLICE_NANOSECONDS
    assert nice == -5
