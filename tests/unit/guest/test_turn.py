import os
from pathlib import Path

import pytest

from pyexec.sandbox.claims import Claim, claim
from pyexec_guest.keeper.turn import Queue, is_locked, take_place, wake


class Line:
    """Executions that stand in one line."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "queue"
        self._count = 0

    def stand(self) -> Claim:
        self._count += 1
        name = f"{self._count:032x}"
        (self.root / name).mkdir()
        return claim(self.root / name, self.folder, name)

    def queue(self, held: Claim, slots: int = 1) -> Queue:
        return Queue(str(self.folder), held.entry, slots, lambda _folder: "")

    def entries(self) -> list[str]:
        return sorted(name for name in os.listdir(self.folder) if not name.startswith("."))


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return Line(tmp_path)


@pytest.mark.parametrize(("slots", "positions"), [(1, [0, 1, 2, 3]), (2, [0, 0, 1, 2]), (4, [0, 0, 0, 0])])
def test_as_many_run_at_once_as_there_are_slots_and_the_rest_wait_in_order(
    line: Line, slots: int, positions: list[int]
) -> None:
    held = [line.stand() for _ in range(4)]

    assert [line.queue(each, slots).position() for each in held] == positions


def test_whoever_leaves_lets_the_next_one_go(line: Line) -> None:
    first, second, third = (line.stand() for _ in range(3))

    queue = line.queue(first)
    queue.leave()
    woken = queue.next()

    assert woken[0] == f"{2:032x}"
    assert [line.queue(each).position() for each in (second, third)] == [0, 1]
    assert line.entries() == [second.entry, third.entry]


def test_a_place_that_was_given_up_in_the_middle_moves_the_rest_up(line: Line) -> None:
    _first, second, third = (line.stand() for _ in range(3))

    line.queue(second).leave()

    assert line.queue(third).position() == 1


def test_whoever_was_killed_does_not_count_and_is_cleared_away(line: Line) -> None:
    first, second = line.stand(), line.stand()

    first.release()

    assert line.queue(second).position() == 0
    assert line.entries() == [second.entry]


def test_two_who_clear_away_the_same_entry_do_not_get_in_each_others_way(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = line.stand(), line.stand()
    first.release()
    unlink = os.unlink

    def unlink_second(path: str) -> None:
        unlink(path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", unlink_second)

    assert line.queue(second).position() == 0


def test_leaving_twice_is_leaving(line: Line) -> None:
    only = line.stand()

    line.queue(only).leave()

    line.queue(only).leave()
    assert line.entries() == []


def test_a_lock_that_is_not_there_is_not_held(tmp_path: Path) -> None:
    assert not is_locked(str(tmp_path / "gone"))


def test_waking_somebody_who_is_gone_fails(tmp_path: Path) -> None:
    (tmp_path / ("a" * 32)).mkdir()
    with pytest.raises(OSError, match=r"No such file|Connection refused"):
        wake(str(tmp_path), "a" * 32)


def test_who_joins_later_stands_behind_those_who_are_there_by_then(line: Line, tmp_path: Path) -> None:
    lock = tmp_path / "joins"
    lock.touch()
    first = line.stand()
    joining = Queue(str(line.folder), None, 1, lambda folder: take_place(folder, str(lock), "f" * 32))
    joining.leave()
    assert joining.next() == []
    assert joining.position() == 1
    line.queue(first).leave()
    assert joining.position() == 0
