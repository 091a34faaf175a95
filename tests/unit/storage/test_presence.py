"""A server that was killed is noticed by the others, as long as it may have left something; one that ended is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyexec.storage import presence
from pyexec.storage.presence import Presence

SHOWING = """
import sys
from pathlib import Path
from pyexec.storage.presence import Presence
Presence(Path(sys.argv[1])).show()
print("shown", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "servers"


@pytest.fixture
def me(folder: Path) -> Presence:
    return Presence(folder)


def kill_one(folder: Path, me: Presence) -> None:
    """Start a server that shows its presence, see that it counts as alive, and kill it."""
    with subprocess.Popen(
        [sys.executable, "-c", SHOWING, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "shown\n"
        assert me.killed() == []
        server.kill()


def test_one_that_is_killed_is_noticed_until_all_that_it_left_can_be_there(
    folder: Path, me: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    me.show()
    kill_one(folder, me)
    (first,) = me.killed()
    me.note([first])
    (again,) = me.killed()
    me.note([again])
    assert me.killed() == [again], "it may leave something yet"

    monkeypatch.setattr(presence, "AFTERMATH_SECONDS", 0.0)
    me.note([again])

    assert me.killed() == []


def test_one_that_ends_as_it_should_leaves_nothing(folder: Path, me: Presence) -> None:
    other = Presence(folder)
    other.show()
    assert me.killed() == []
    other.close()
    other.close()
    assert (me.killed(), os.listdir(folder)) == ([], [])


def test_two_that_note_the_same_do_not_get_in_each_others_way(folder: Path, me: Presence) -> None:
    kill_one(folder, me)
    seen = me.killed()
    me.note(seen)
    Presence(folder).note(seen)
    assert len(me.killed()) == 1


def test_where_nobody_ever_was_nobody_was_killed(me: Presence) -> None:
    assert me.killed() == []


def test_on_a_disk_that_cannot_be_written_a_server_works_all_the_same(folder: Path, me: Presence) -> None:
    folder.write_text("in its way")
    me.show()
    assert me.killed() == []
    me.close()
