"""Replacing a file of a user's: all of it or nothing."""

import os
from pathlib import Path

import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.quality.files import read_source, replace_source


def test_a_file_that_somebody_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text("theirs")
    with pytest.raises(InvalidArgumentError, match="changed by somebody else"):
        replace_source(file, b"what was read", b"formatted")
    assert file.read_text() == "theirs"


def test_when_writing_fails_the_file_is_what_it_was_and_nothing_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "code.py"
    file.write_text("before")

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidArgumentError, match="cannot be written: No space left on device"):
        replace_source(file, b"before", b"after")
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["code.py"]


def test_a_file_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be written: No such file"):
        replace_source(tmp_path / "code.py", b"", b"after")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.root
def test_the_owner_stays(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text("before")
    os.chown(file, 1234, 2345)
    replace_source(file, b"before", b"after")
    assert (file.read_text(), file.stat().st_uid, file.stat().st_gid) == ("after", 1234, 2345)


def test_what_is_too_large_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_bytes(b"#" * 11)
    assert read_source(file, 11) == b"#" * 11
    with pytest.raises(InvalidArgumentError, match="is larger than"):
        read_source(file, 10)
