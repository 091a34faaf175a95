import random
from pathlib import Path

import pytest

from pyexec.storage import follow
from pyexec.storage.follow import LogFollower, Piece
from pyexec_guest.log import EventWriter, StreamWriter


class Keeper:
    """Writes a log the way a keeper does: the bytes first, then the entry that says where they begin."""

    def __init__(self, folder: Path, *, head: int = 10**6, tail: int = 10**6) -> None:
        self.streams = {name: StreamWriter(str(folder), name, head, tail) for name in ("stdout", "stderr")}
        self.events = EventWriter(str(folder))
        self.now = 1.0

    def write(self, stream: str, text: str, *, noted: bool = True) -> None:
        writer = self.streams[stream]
        at = writer.total
        writer.write(memoryview(text.encode()))
        if noted:
            self.events.output(stream, at, self.now)


def new(follower: LogFollower) -> list[tuple[str, str]]:
    """What is new, with pieces of one stream that follow each other put together."""
    joined: list[tuple[str, str]] = []
    for piece in follower.new():
        if joined and joined[-1][0] == piece.stream:
            joined[-1] = (piece.stream, joined[-1][1] + piece.data.decode())
        else:
            joined.append((piece.stream, piece.data.decode()))
    return joined


def test_both_streams_come_in_the_order_they_were_written(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    written = [
        ("stdout", "one\n"),
        ("stderr", "two\n"),
        ("stdout", "three\n"),
        ("stderr", "four\n"),
        ("stdout", "five"),
    ]
    for stream, text in written:
        keeper.write(stream, text)

    assert new(LogFollower(tmp_path)) == written


def test_each_call_brings_what_is_new_and_only_that(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    follower = LogFollower(tmp_path)

    assert new(follower) == []
    keeper.write("stderr", "a")
    keeper.write("stdout", "b")
    assert new(follower) == [("stderr", "a"), ("stdout", "b")]
    assert new(follower) == []
    keeper.write("stdout", "c")
    keeper.write("stderr", "d")
    assert new(follower) == [("stdout", "c"), ("stderr", "d")]
    assert new(follower) == []


def test_bytes_that_no_entry_tells_of_yet_are_not_held_back(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    follower = LogFollower(tmp_path)
    keeper.write("stdout", "a")
    keeper.write("stderr", "b", noted=False)

    assert sorted(new(follower)) == [("stderr", "b"), ("stdout", "a")]


def test_an_execution_that_has_not_begun_has_printed_nothing(tmp_path: Path) -> None:
    assert new(LogFollower(tmp_path)) == []
    assert new(LogFollower(tmp_path / "gone")) == []


def test_a_long_run_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "PIECE_BYTES", 4)
    Keeper(tmp_path).write("stdout", "0123456789")

    assert list(LogFollower(tmp_path).new()) == [
        Piece("stdout", b"0123"),
        Piece("stdout", b"4567"),
        Piece("stdout", b"89"),
    ]


def test_what_is_no_longer_kept_is_said(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, head=4, tail=8)
    for number in range(0, 100, 2):
        keeper.write("stdout", f"{number:02d}")

    first, second = LogFollower(tmp_path).new()

    assert first == Piece("stdout", b"0002")
    assert second == Piece("stdout", b"92949698", gap=88)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_doubled_or_out_of_order_whenever_one_looks(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    keeper = Keeper(tmp_path)
    follower = LogFollower(tmp_path)
    written: list[tuple[str, str]] = []
    seen = ""
    for number in range(200):
        stream = choose.choice(["stdout", "stderr"])
        keeper.now += choose.choice([0.001, 0.6])
        keeper.write(stream, f"{number:03d}\n")
        written.append((stream, f"{number:03d}\n"))
        if choose.random() < 0.2:
            seen += "".join(text for _stream, text in new(follower))
    seen += "".join(text for _stream, text in new(follower))

    assert seen == "".join(text for _stream, text in written)


@pytest.mark.parametrize("line", [b'{"n":2,"t":1.0,"k":"std', b"\n", b"[]", b"{}", b"\xff"])
def test_an_entry_that_cannot_be_read_is_passed_over(tmp_path: Path, line: bytes) -> None:
    keeper = Keeper(tmp_path)
    keeper.write("stderr", "a")
    with open(tmp_path / "events", "ab") as file:
        file.write(line + b"\n")
    keeper.write("stdout", "b")

    assert new(LogFollower(tmp_path)) == [("stderr", "a"), ("stdout", "b")]


def test_an_entry_that_is_still_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    follower = LogFollower(tmp_path)
    entry = b'{"n":1,"t":1.0,"k":"stderr","at":0}\n'
    keeper.write("stderr", "a", noted=False)
    with open(tmp_path / "events", "ab", buffering=0) as file:
        file.write(entry[:20])
        assert new(follower) == [("stderr", "a")]
        file.write(entry[20:])
    keeper.write("stdout", "b")

    assert new(follower) == [("stdout", "b")]
