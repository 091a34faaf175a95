import os
from pathlib import Path

import pytest

from pyexec.storage.json_files import read_json, write_json, write_text


def test_what_was_written_is_read_and_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    for values in ({"a": [1, None, "ü"]}, {}):
        write_json(file, values)
        assert read_json(file) == values
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"[1]", b"null", b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_read_as_if_it_were_missing(tmp_path: Path, content: bytes) -> None:
    assert read_json(tmp_path / "gone") == read_json(tmp_path) == {}
    (tmp_path / "a.json").write_bytes(content)
    assert read_json(tmp_path / "a.json") == {}


def test_who_has_a_file_open_goes_on_seeing_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "a"
    write_text(file, "old")
    with file.open() as opened:
        write_text(file, "newer")
        assert (opened.read(), file.read_text()) == ("old", "newer")


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_half(tmp_path: Path) -> None:
    file = tmp_path / "a"
    write_text(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "new \udcff")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path / "folder", "new")
    assert file.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a", "folder"]
