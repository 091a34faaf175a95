"""Files from a guest: what is written down of them, where, and under which name."""

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyexec_guest.keeper import files
from pyexec_guest.keeper.files import FileBreachError, IncomingFiles, plain_name


@pytest.fixture
def incoming(tmp_path: Path) -> Iterator[IncomingFiles]:
    made = IncomingFiles(str(tmp_path))
    yield made
    made.close()


def piece(name: Any, data: bytes = b"a", **fields: Any) -> dict[str, Any]:
    return {"name": name, "data": base64.b64encode(data).decode(), "last": True, "size": len(data), **fields}


def test_a_file_is_there_when_its_last_piece_has_come(incoming: IncomingFiles, tmp_path: Path) -> None:
    assert incoming.take(piece("sub/a.csv", b"a", last=False)) == {"name": "sub/a.csv"}
    assert not (tmp_path / "sub__a.csv").exists()
    assert incoming.take(piece("sub/a.csv", b"b", size=2)) == {"name": "sub/a.csv", "as": "sub__a.csv", "size": 2}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"sub__a.csv": "ab"}


def test_no_file_takes_the_place_of_another_and_links_are_not_followed(incoming: IncomingFiles, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    (tmp_path / "a.csv").symlink_to(outside)
    names = [incoming.take(piece(name))["as"] for name in ("a.csv", "a.csv", "sub/a", "sub__a", "a.tar.gz")]
    assert names == ["a-2.csv", "a-3.csv", "sub__a", "sub__a-2", "a.tar.gz"]
    assert not outside.exists()


def test_a_torn_file_is_removed(tmp_path: Path) -> None:
    incoming = IncomingFiles(str(tmp_path))
    incoming.take(piece("a", last=False))
    incoming.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "frame",
    [
        *(piece(name) for name in ("", ".", "..", "../a", "/a", "a//b", "a/", ".a", "a/.b", "a\\b", "a\0", "a\n")),
        *(piece(name) for name in (None, 1, ["a"], "x" * 401, "a/../b", "\ud800", "\u202e")),
        {**piece("a"), "data": "?"},
        {**piece("a"), "data": None},
        {**piece("a"), "data": "A" * (files.PIECE_CHARACTERS + 4)},
        piece("a", size=None),
        piece("a", size=True),
        piece("a", size=2),
        piece("a", size=-1),
    ],
)
def test_what_is_no_file_is_a_breach_and_leaves_nothing(
    incoming: IncomingFiles, tmp_path: Path, frame: dict[str, Any]
) -> None:
    with pytest.raises(FileBreachError):
        incoming.take(frame)
    assert list(tmp_path.iterdir()) == []


def test_sizes_have_an_end_for_one_and_for_all(
    incoming: IncomingFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST", 10)
    incoming.take(piece("a", b"x" * 10))
    incoming.take(piece("b", b"x" * 6, last=False))
    with pytest.raises(FileBreachError):
        incoming.take(piece("b", b"x" * 6, last=False))
    assert os.listdir(tmp_path) == ["a"]


def test_a_full_disk_costs_the_file_and_not_the_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    incoming = IncomingFiles(str(tmp_path))

    def full(_fd: int, _data: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", full)
        incoming.take(piece("a", last=False))
        assert incoming.take(piece("a", size=2)) == {"name": "a", "as": None, "size": 2}
    assert incoming.take(piece("b"))["as"] == "b"
    assert os.listdir(tmp_path) == ["b"]


def test_a_long_name_is_cut_and_keeps_its_ending() -> None:
    name = plain_name("漢" * 100 + "/" + "字" * 100 + ".csv")
    assert len(name.encode()) <= 180
    assert name.endswith(".csv")
