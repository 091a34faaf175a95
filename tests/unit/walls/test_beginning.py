"""What begins before anything of it is written, and what cannot."""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pyexec.sandbox.claims import LOCK, claim
from pyexec.sandbox.guarding import Orders
from pyexec.walls.bubblewrap.beginning import UnnotedError, begin, note_down
from pyexec_guest import protocol
from pyexec_guest.keeper.turn import hold_place, is_locked, take_place
from tests.unit.walls.stays import GuestStay, house


def orders(executions: Path, line: Path, **more: Any) -> dict[str, Any]:
    return {
        "id": "a" * 32,
        "owner": "somebody",
        "folder": str(executions / ("a" * 32)),
        "lines": [(str(line), None, 1)],
        "argv": ["/environment/bin/python"],
        "python_at": 0,
        "guest": {"code": "1\ud800"},
        "code": "code/script.py",
        "room": 0,
        "timeout": 0,
        **more,
    }


RECORD = {"execution.json": "{}"}


@contextmanager
def saying(files: dict[str, str] | None) -> Generator[Orders]:
    """A server that says what is to be in the folder, or is gone before that."""
    keeper, server = socket.socketpair()
    with keeper:
        server.close()
        yield Orders(keeper, b"" if files is None else protocol.encode({"files": [*files.items()]}))


@pytest.fixture
def stay() -> Generator[GuestStay]:
    stay = GuestStay()
    yield stay
    stay.end()


@pytest.fixture
def lock(tmp_path: Path) -> Generator[Path]:
    """The lock of a keeper that lives."""
    (tmp_path / "keeper").mkdir()
    held = claim(tmp_path / "keeper", tmp_path / "elsewhere", "c" * 32)
    yield tmp_path / "keeper" / LOCK
    held.release()


@pytest.fixture
def line(tmp_path: Path) -> Path:
    """A line that somebody has stood in before."""
    (tmp_path / "lock").touch()
    entry = take_place(str(tmp_path / "line"), str(tmp_path / "lock"), "b" * 32)
    (tmp_path / "line" / entry).unlink()
    return tmp_path / "line"


def is_free(line: Path) -> bool:
    place = hold_place(str(line), 1)
    if place is not None:
        place.close()
    return place is not None


def test_what_has_begun_stands_in_line_by_the_lock_of_its_keeper(
    tmp_path: Path, line: Path, lock: Path, stay: GuestStay
) -> None:
    begun = begin(orders(tmp_path, line), house(stay), lock)
    assert begun is not None
    asked = stay.asked()
    assert (asked["code"], asked["last"], asked["op"]) == ("1\ud800", False, "run")
    assert not begun.folder.exists()
    [(_line, entry, _slots)] = begun.orders["lines"]
    assert os.path.samefile(line / entry, lock)
    assert is_locked(str(line / entry))
    assert not is_free(line)


def test_what_goes_on_has_a_folder_with_its_files_and_a_lock_of_its_own(
    tmp_path: Path, line: Path, lock: Path, stay: GuestStay
) -> None:
    at_home = house(stay)
    begun = begin(orders(tmp_path, line), at_home, lock)
    assert begun is not None
    with saying(RECORD) as said:
        assert begun.hear_files(said)
    own = note_down(begun, at_home, lock)
    assert (begun.folder / "code" / "script.py").read_bytes() == b"1\xed\xa0\x80"
    assert (begun.folder / "execution.json").read_bytes() == b"{}"
    assert is_locked(str(begun.folder / LOCK))
    os.close(own)
    assert not is_locked(str(begun.folder / LOCK))


def test_what_cannot_be_noted_down_is_ended_and_leaves_no_trace(
    tmp_path: Path, line: Path, lock: Path, stay: GuestStay
) -> None:
    at_home = house(stay)
    begun = begin(orders(tmp_path, line), at_home, lock)
    assert begun is not None
    begun.folder.touch()
    with pytest.raises(UnnotedError, match="File exists"):
        note_down(begun, at_home, lock)
    assert stay.left == [False]
    assert is_free(line)


def test_one_that_ends_while_it_is_asked_has_begun_nothing(
    tmp_path: Path, line: Path, lock: Path, stay: GuestStay
) -> None:
    stay.guest.close()
    assert begin(orders(tmp_path, line), house(stay), lock) is None
    assert stay.left == [False]
    assert is_free(line)


def test_nobody_is_asked_where_somebody_stands_in_line(tmp_path: Path, line: Path, lock: Path, stay: GuestStay) -> None:
    take_place(str(line), str(tmp_path / "lock"), "c" * 32)
    assert begin(orders(tmp_path, line), house(stay), lock) is None
    assert stay.turns == []


def test_nobody_is_asked_where_the_disk_is_nearly_full(tmp_path: Path, line: Path, lock: Path, stay: GuestStay) -> None:
    assert begin(orders(tmp_path, line, room=2**62), house(stay), lock) is None
    assert stay.turns == []


def test_where_there_is_no_place_to_run_the_line_is_free_for_others(tmp_path: Path, line: Path, lock: Path) -> None:
    assert begin(orders(tmp_path, line), house(None), lock) is None
    assert is_free(line)


def test_in_the_line_of_its_session_it_holds_the_end_until_it_goes_on(
    tmp_path: Path, line: Path, lock: Path, stay: GuestStay
) -> None:
    at_home = house(stay)
    begun = begin(orders(tmp_path, line, session={"folder": str(tmp_path)}), at_home, lock)
    assert begun is not None
    assert [name for name in os.listdir(line) if not name.startswith(".")] == []
    assert not is_free(line)
    with saying(RECORD) as said:
        begun.hear_files(said)
    os.close(note_down(begun, at_home, lock))
    [(_line, entry, _slots)] = begun.orders["lines"]
    assert os.path.samefile(line / entry, lock)
    assert not is_free(line)
    begun.leave_lines()
    assert is_free(line)


def test_one_whose_server_is_gone_before_it_has_said_what_it_is_is_not_wanted(
    tmp_path: Path, line: Path, lock: Path, stay: GuestStay
) -> None:
    begun = begin(orders(tmp_path, line), house(stay), lock)
    assert begun is not None
    with saying(None) as said:
        assert not begun.hear_files(said)
    assert begun.orders["files"] == [("code/script.py", "1\ud800")]
