"""The wall on a machine with control groups of version 2 only, which most are: a kernel of its own, in a process.

The machines of this project have version 1. User-mode Linux is a kernel as Debian has it, built to be run as a program.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.walls.bubblewrap import HERE, INTERPRETER_NEEDS, sandbox_python
from tests.walls.inside.with_version2 import MARK

KERNEL = shutil.which("linux.uml")
MEMORY_MB = 2048
RUN_SECONDS = 500.0

pytestmark = [pytest.mark.root, pytest.mark.exhaustive]


@pytest.mark.skipif(KERNEL is None, reason="there is no linux.uml (Debian: user-mode-linux)")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="user-mode Linux is for x86_64")
def test_with_control_groups_of_version_2_every_limit_is_held_by_the_kernel() -> None:
    assert KERNEL is not None
    needs = [f"{name}={value}" for name, value in {**INTERPRETER_NEEDS, "PYTHONDONTWRITEBYTECODE": "1"}.items()]
    program = [sys.executable, "-m", "tests.walls.inside.with_version2", str(sandbox_python())]
    words = ["env", f"--chdir={HERE.parents[1]}", *needs, *program]
    done = subprocess.run(
        [
            KERNEL,
            f"mem={MEMORY_MB}M",
            *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet", "con=null", "con0=fd:0,fd:1"),
            *(f"init={HERE / 'inside/machine.sh'}", "--", *words),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    said = done.stdout.decode("utf-8", "replace")
    line = next((line for line in said.splitlines() if line.startswith(MARK)), None)
    assert line is not None, said[-4000:]
    told = json.loads(line.removeprefix(MARK))
    assert (told["tier"], told["waived"], told["left"]) == ("cgroup2", [], [0, False])
    assert {key: outcome for key, outcome in told["outcomes"].items() if not outcome.startswith("held: ")} == {}
    outcomes = told["outcomes"]
    assert "the kernel killed" in outcomes["memory-together"]
    assert "the kernel ended it at 96 MB of 96 MB" in outcomes["memory-shared"]
    assert "held back" in outcomes["processor"]
