import os
from pathlib import Path

import pytest

from pyexec.domain.progress import Progress
from pyexec.storage.progress import WINDOW_BYTES, read_progress, write_progress
from pyexec_guest.log import EventWriter

BAR = b"\r 50%|#####     | 5/10 [00:01<00:01]"


def put(folder: Path, stream: str, data: bytes) -> None:
    (folder / stream).write_bytes(data)


def read(folder: Path) -> Progress | None:
    return read_progress(folder, final=False)


def test_an_execution_that_says_nothing_has_no_progress(tmp_path: Path) -> None:
    assert read(tmp_path) is None
    put(tmp_path, "stdout", b"3/10 done\n")
    assert read(tmp_path) is None


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_lines_and_bars_are_read_from_either_stream(tmp_path: Path, stream: str) -> None:
    put(tmp_path, stream, BAR)
    assert read(tmp_path) == Progress(current=5, total=10)
    put(tmp_path, stream, b"::progress 1/4 files\n" + BAR)
    assert read(tmp_path) == Progress(current=1, total=4, message="files"), "what is said in so many words wins"


@pytest.mark.parametrize("last", ["stdout", "stderr"])
def test_of_lines_on_both_streams_the_later_one_counts(tmp_path: Path, last: str) -> None:
    first = "stderr" if last == "stdout" else "stdout"
    put(tmp_path, first, b"::progress 1/2 first\n")
    put(tmp_path, last, b"::progress 2/2 last\n")
    events = EventWriter(os.fspath(tmp_path))
    events.output(first, 0, 1.0)
    events.output(last, 0, 1.1)
    events.close()
    assert read(tmp_path) == Progress(current=2, total=2, message="last")


def test_only_the_end_of_a_long_stream_is_looked_at(tmp_path: Path) -> None:
    told = b"::progress 1/4\n"
    put(tmp_path, "stdout", told + b"x" * (WINDOW_BYTES - len(told)))
    assert read(tmp_path) == Progress(current=1, total=4)
    put(tmp_path, "stdout", told + b"x" * (WINDOW_BYTES - len(told) + 1))
    assert read(tmp_path) is None


def test_what_was_told_to_the_server_comes_before_what_was_printed(tmp_path: Path) -> None:
    put(tmp_path, "stdout", b"::progress 1/4\n")
    write_progress(tmp_path, Progress(current=2, total=None, message="told"))
    assert read(tmp_path) == Progress(current=2, total=None, message="told")


@pytest.mark.parametrize("text", ["", "[", "[]", '"x"', '{"current": "many"}', '{"current": -1}', '{"current": NaN}'])
def test_a_damaged_note_tells_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "progress.json").write_text(text)
    assert read(tmp_path) is None


def test_a_note_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"current": 1}')
    (tmp_path / "progress.json").symlink_to(tmp_path / "elsewhere")
    assert read(tmp_path) is None
