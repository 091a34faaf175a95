import errno
import os
import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyexec_guest import log
from pyexec_guest.log import Chunk, Span, StreamWriter, read, spans


def write(folder: Path, data: bytes, *, head: int = 10, tail: int = 80, gulp: int = 7) -> StreamWriter:
    writer = StreamWriter(str(folder), "stdout", head, tail)
    for start in range(0, len(data), gulp):
        writer.write(memoryview(data[start : start + gulp]))
    return writer


def kept(folder: Path, limit: int = 10**6) -> list[Chunk]:
    """Everything that can be read, piece by piece."""
    chunks: list[Chunk] = []
    offset = 0
    while (chunk := read(str(folder), "stdout", offset, limit)).data:
        chunks.append(chunk)
        offset = chunk.start + len(chunk.data)
    return chunks


def numbered(size: int) -> bytes:
    return b"".join(f"{number:05d},".encode() for number in range(size // 6 + 1))[:size]


@contextmanager
def file_size_limit(size: int) -> Generator[None]:
    """Let the kernel refuse to make any file larger than this, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def test_a_short_stream_is_one_plain_file_of_its_bytes(tmp_path: Path) -> None:
    write(tmp_path, b"hello\n").close()

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"stdout": b"hello\n"}


def test_a_stream_that_nothing_was_written_to_is_an_empty_file(tmp_path: Path) -> None:
    write(tmp_path, b"").close()

    assert spans(str(tmp_path), "stdout") == [Span(0, 0, "stdout")]
    assert read(str(tmp_path), "stdout", 0, 100) == Chunk(0, b"", 0)


def test_a_stream_that_does_not_exist_reads_as_nothing(tmp_path: Path) -> None:
    assert spans(str(tmp_path / "gone"), "stdout") == []
    assert read(str(tmp_path / "gone"), "stdout", 5, 100) == Chunk(5, b"", 0)


def test_a_long_stream_keeps_its_head_and_its_tail_and_counts_everything(tmp_path: Path) -> None:
    data = numbered(1000)

    writer = write(tmp_path, data, head=100, tail=160)
    writer.close()

    head, tail = kept(tmp_path)
    assert writer.total == 1000
    assert head == Chunk(0, data[:100], 0)
    assert tail == Chunk(tail.start, data[tail.start :], tail.start - 100)
    assert 160 - 160 // log.SEGMENTS <= len(tail.data) <= 160


@given(
    data=st.binary(max_size=600),
    head=st.integers(min_value=0, max_value=60),
    tail=st.integers(min_value=0, max_value=200),
    gulp=st.integers(min_value=1, max_value=300),
    limit=st.integers(min_value=1, max_value=100),
)
def test_what_is_kept_lies_where_it_was_written_and_is_never_more_than_its_share(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, head: int, tail: int, gulp: int, limit: int
) -> None:
    folder = tmp_path_factory.mktemp("log")

    writer = write(folder, data, head=head, tail=tail, gulp=gulp)
    writer.close()

    chunks = kept(folder, limit)
    position = 0
    for chunk in chunks:
        assert chunk.start == position + chunk.gap
        assert data[chunk.start : chunk.start + len(chunk.data)] == chunk.data
        assert 1 <= len(chunk.data) <= limit
        position = chunk.start + len(chunk.data)
    assert position == len(data) == writer.total
    segments = log.SEGMENTS * max(1, tail // log.SEGMENTS)
    assert sum(len(chunk.data) for chunk in chunks) <= max(1, head) + segments
    assert data.startswith(b"".join(chunk.data for chunk in chunks if chunk.start < max(1, head))[: max(1, head)])


def test_reading_stops_at_a_gap_and_goes_on_behind_it(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(b"0123")
    (tmp_path / f"stdout.{10:020d}").write_bytes(b"abcd")
    (tmp_path / f"stdout.{14:020d}").write_bytes(b"efgh")

    assert read(str(tmp_path), "stdout", 2, 100) == Chunk(2, b"23", 0)
    assert read(str(tmp_path), "stdout", 4, 100) == Chunk(10, b"abcdefgh", 6)
    assert read(str(tmp_path), "stdout", 7, 3) == Chunk(10, b"abc", 3)
    assert read(str(tmp_path), "stdout", 13, 3) == Chunk(13, b"def", 0)
    assert read(str(tmp_path), "stdout", 18, 3) == Chunk(18, b"", 0)
    assert read(str(tmp_path), "stdout", 99, 3) == Chunk(99, b"", 0)


def test_files_that_are_not_segments_are_no_part_of_the_stream(tmp_path: Path) -> None:
    for name in ("stdout", "stdout.part", "stdout.", "stdout.12x", "stdoutside", f"stderr.{3:020d}"):
        (tmp_path / name).write_bytes(b"abc")

    assert spans(str(tmp_path), "stdout") == [Span(0, 3, "stdout")]


def test_a_segment_that_vanishes_while_it_is_read_is_answered_from_what_is_there_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stdout").write_bytes(b"01")
    oldest = tmp_path / f"stdout.{2:020d}"
    oldest.write_bytes(b"23")
    (tmp_path / f"stdout.{4:020d}").write_bytes(b"45")
    listed = log.spans

    def then_the_writer_deletes_one(folder: str, stream: str) -> list[Span]:
        found = listed(folder, stream)
        oldest.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(log, "spans", then_the_writer_deletes_one)

    assert read(str(tmp_path), "stdout", 2, 100) == Chunk(4, b"45", 2)


# -- a disk that is full --------------------------------------------------------------------------------------------


def test_a_full_disk_drops_what_does_not_fit_and_goes_on_counting(tmp_path: Path) -> None:
    data = numbered(200)
    writer = StreamWriter(str(tmp_path), "stdout", 1000, 8000)

    with file_size_limit(50):
        writer.write(memoryview(data))

    assert kept(tmp_path) == [Chunk(0, data[:50], 0)]
    assert (writer.total, writer.dropped) == (200, 150)
    writer.close()


def test_what_comes_after_a_full_disk_lies_behind_a_gap(tmp_path: Path) -> None:
    data = numbered(200)
    writer = StreamWriter(str(tmp_path), "stdout", 1000, 8000)

    with file_size_limit(50):
        writer.write(memoryview(data))
    writer.write(memoryview(b"after"))
    writer.write(memoryview(b"wards"))

    assert kept(tmp_path) == [Chunk(0, data[:50], 0), Chunk(200, b"afterwards", 150)]
    assert writer.total == 210
    writer.close()


def test_a_disk_that_stays_full_leaves_no_empty_files_behind(tmp_path: Path) -> None:
    writer = StreamWriter(str(tmp_path), "stdout", 10, 8000)
    writer.write(memoryview(b"0123456789"))

    with file_size_limit(0):
        for _gulp in range(30):
            writer.write(memoryview(b"lost"))
    writer.write(memoryview(b"kept"))

    assert [path.name for path in sorted(tmp_path.iterdir())] == ["stdout", f"stdout.{130:020d}"]
    assert kept(tmp_path) == [Chunk(0, b"0123456789", 0), Chunk(130, b"kept", 120)]
    writer.close()


def test_a_disk_on_which_no_file_can_be_made_drops_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = StreamWriter(str(tmp_path), "stdout", 4, 800)
    open_really = os.open

    def refuse(*_arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "open", refuse)
    writer.write(memoryview(b"012345"))
    monkeypatch.setattr(os, "open", open_really)
    writer.write(memoryview(b"67"))

    assert kept(tmp_path) == [Chunk(0, b"0123", 0), Chunk(6, b"67", 2)]
    assert (writer.total, writer.dropped) == (8, 2)
    writer.close()


@given(
    pieces=st.lists(
        st.tuples(st.binary(min_size=1, max_size=20), st.integers(min_value=-1, max_value=20)), max_size=40
    ),
    head=st.integers(min_value=1, max_value=40),
    tail=st.integers(min_value=8, max_value=200),
)
def test_a_disk_that_is_full_now_and_then_never_puts_a_byte_in_the_wrong_place(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[bytes, int]], head: int, tail: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    room = [0]
    write_really = os.write

    def write_what_fits(fd: int, data: memoryview) -> int:
        fits = min(len(data), room[0])
        if fits == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room[0] -= fits
        return write_really(fd, data[:fits])

    writer = StreamWriter(str(folder), "stdout", head, tail)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", write_what_fits)
        for data, fits in pieces:
            room[0] = len(data) if fits < 0 else fits
            writer.write(memoryview(data))
    writer.close()

    data = b"".join(piece for piece, _fits in pieces)
    assert writer.total == len(data)
    for chunk in kept(folder):
        assert data[chunk.start : chunk.start + len(chunk.data)] == chunk.data
