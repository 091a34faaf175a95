"""By what turns stand in line that have no lock of their own yet."""

import subprocess
import sys
from pathlib import Path

from pyexec.walls.bubblewrap.keeper import begin_life
from pyexec_guest.keeper.turn import Queue, hold_place, take_place

STAND = """
import sys
from pathlib import Path
from pyexec.walls.bubblewrap.keeper import begin_life
from pyexec_guest.keeper.turn import take_place
print(take_place(sys.argv[2], str(begin_life(Path(sys.argv[1]))), "a" * 32), flush=True)
sys.stdin.read()
"""


def test_who_stood_by_a_keeper_that_was_killed_stands_by_no_later_one(tmp_path: Path) -> None:
    line = str(tmp_path / "line")
    (tmp_path / "keeper").mkdir()
    earlier = subprocess.Popen(
        [sys.executable, "-c", STAND, str(tmp_path / "keeper"), line], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert earlier.stdout is not None
    assert earlier.stdin is not None
    entry = earlier.stdout.readline().decode().strip()
    waiting = take_place(line, str(begin_life(tmp_path / "keeper")), "b" * 32)
    assert _position(line, waiting) == 1
    earlier.kill()
    earlier.communicate()
    assert _position(line, waiting) == 0
    assert not (tmp_path / "line" / entry).exists()
    assert hold_place(line, 1) is None


def _position(line: str, entry: str) -> int:
    return Queue(line, entry, 1, lambda _folder: entry).position()
