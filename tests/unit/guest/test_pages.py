"""Gathering memory into large pages."""

import subprocess
import sys

GATHER = """
from pyexec_guest.forkserver import pages
kept = [bytes([number % 256]) * 4096 for number in range(8192)]
before = [hash(one) for one in kept]
count = pages.gather()
assert [hash(one) for one in kept] == before
assert count >= 0
print("same")
"""


def test_memory_that_is_gathered_holds_what_it_held() -> None:
    assert subprocess.run([sys.executable, "-c", GATHER], capture_output=True, text=True).stdout == "same\n"
