"""What begins before its folder is made, where that cannot be."""

import os
from pathlib import Path
from typing import Any, cast

import pytest

from pyexec.sandbox.claims import LOCK
from pyexec.walls.bubblewrap.beginning import begin
from pyexec.walls.bubblewrap.stays import House
from pyexec.walls.bubblewrap.weights import Weights
from pyexec_guest.keeper.turn import hold_place, is_locked, take_place


class RecordingStay:
    """A place to run that notes what is asked for, and how it is left."""

    def __init__(self) -> None:
        self.box = self
        self.connection = self
        self.request: dict[str, Any] = {"last": False}
        self.is_open = True
        self.sent: list[dict[str, Any]] = []
        self.left: list[bool] = []
        self.shares: list[float] = []

    def spent(self) -> None:
        return None

    def late(self) -> list[dict[str, Any]]:
        return []

    def send(self, request: dict[str, Any], *, large: bool) -> None:
        assert large
        self.sent.append(request)

    def weigh(self, share: float) -> None:
        self.shares.append(share)

    def leave(self, *, alive: bool, reason: str | None) -> None:
        self.left.append(alive)

    def close(self) -> None:
        pass


class OneStay:
    def __init__(self, stay: RecordingStay | None) -> None:
        self.weights = Weights()
        self._stay = stay

    def stay_at_once(self, *_asked: object) -> RecordingStay | None:
        return self._stay


def house(stay: RecordingStay | None) -> House:
    return cast("House", OneStay(stay))


def orders(executions: Path, line: Path) -> dict[str, Any]:
    return {
        "id": "a" * 32,
        "owner": "somebody",
        "folder": str(executions / ("a" * 32)),
        "lines": [(str(line), None, 1)],
        "argv": ["/environment/bin/python"],
        "python_at": 0,
        "guest": {"code": "1"},
        "files": [("code/script.py", "1\ud800"), ("execution.json", "{}")],
    }


@pytest.fixture
def line(tmp_path: Path) -> Path:
    """A line that somebody has stood in before."""
    (tmp_path / "lock").touch()
    entry = take_place(str(tmp_path / "line"), str(tmp_path / "lock"), "b" * 32)
    (tmp_path / "line" / entry).unlink()
    return tmp_path / "line"


def test_what_is_noted_down_is_there_with_its_lock_and_its_place(tmp_path: Path, line: Path) -> None:
    given, stay = orders(tmp_path, line), RecordingStay()
    begun = begin(given, house(stay))
    assert begun is not None
    assert [(one["code"], one["last"], one["op"]) for one in stay.sent] == [("1", False, "run")]
    folder = Path(given["folder"])
    assert (folder / "code" / "script.py").read_bytes() == b"1\xed\xa0\x80"
    [(_line, entry, _slots)] = given["lines"]
    assert is_locked(str(line / entry))
    assert os.path.samefile(line / entry, folder / LOCK)
    os.close(given["lock"])
    assert not is_locked(str(line / entry))


def test_what_cannot_be_noted_down_is_ended_and_leaves_no_trace(tmp_path: Path, line: Path) -> None:
    no_folder = tmp_path / "file"
    no_folder.touch()
    stay = RecordingStay()
    with pytest.raises(OSError, match="Not a directory"):
        begin(orders(no_folder, line), house(stay))
    assert stay.left == [False]
    place = hold_place(str(line), 1)
    assert place is not None
    place.close()


def test_one_that_ends_while_it_is_asked_has_begun_nothing(tmp_path: Path, line: Path) -> None:
    stay = RecordingStay()
    stay.is_open = False
    assert begin(orders(tmp_path, line), house(stay)) is None
    assert stay.left == [False]
    assert not Path(tmp_path, "a" * 32).exists()


def test_nobody_is_asked_where_somebody_stands_in_line(tmp_path: Path, line: Path) -> None:
    take_place(str(line), str(tmp_path / "lock"), "c" * 32)
    stay = RecordingStay()
    assert begin(orders(tmp_path, line), house(stay)) is None
    assert stay.sent == []


def test_where_there_is_no_place_to_run_the_line_is_free_for_others(tmp_path: Path, line: Path) -> None:
    assert begin(orders(tmp_path, line), house(None)) is None
    assert not Path(tmp_path, "a" * 32).exists()
    place = hold_place(str(line), 1)
    assert place is not None
    place.close()


def test_nobody_joins_a_line_whose_end_is_held(tmp_path: Path, line: Path) -> None:
    place = hold_place(str(line), 2)
    assert place is not None
    assert hold_place(str(line), 2) is None
    first = place.take(str(tmp_path / "lock"), "d" * 32)
    place.close()
    second = take_place(str(line), str(tmp_path / "lock"), "e" * 32)
    assert first < second
