"""Output that the kernel moves from the pipe into the log lies there as output that was carried does."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyexec_guest import log
from pyexec_guest.log import Chunk, StreamWriter, read

pytestmark = pytest.mark.skipif(not hasattr(os, "splice"), reason="needs splice(2)")


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    for fd in ends:
        os.set_blocking(fd, False)
    yield ends
    for fd in ends:
        os.close(fd)


def kept(folder: Path) -> list[Chunk]:
    chunks: list[Chunk] = []
    offset = 0
    while (chunk := read(str(folder), "stdout", offset, 10**6)).data:
        chunks.append(chunk)
        offset = chunk.start + len(chunk.data)
    return chunks


@given(
    gulps=st.lists(st.tuples(st.binary(min_size=1, max_size=90), st.booleans()), max_size=30),
    head=st.integers(min_value=1, max_value=60),
    tail=st.integers(min_value=8, max_value=200),
)
def test_spliced_and_carried_bytes_lie_where_they_belong(
    tmp_path_factory: pytest.TempPathFactory, gulps: list[tuple[bytes, bool]], head: int, tail: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    writer = StreamWriter(str(folder), "stdout", head, tail)
    reading, writing = os.pipe()
    for data, by_splicing in gulps:
        if not by_splicing:
            writer.write(memoryview(data))
            continue
        os.write(writing, data)
        left = len(data)
        while left:
            left -= writer.splice(reading, left)
    for fd in (reading, writing):
        os.close(fd)
    writer.close()

    data = b"".join(gulp for gulp, _by_splicing in gulps)
    assert (writer.total, writer.dropped) == (len(data), 0)
    chunks = kept(folder)
    for chunk in chunks:
        assert data[chunk.start : chunk.start + len(chunk.data)] == chunk.data
    assert sum(len(chunk.data) for chunk in chunks) <= head + log.SEGMENTS * max(1, tail // log.SEGMENTS)
    if data:
        assert chunks[0].start == 0
        assert chunks[-1].start + len(chunks[-1].data) == len(data)


def test_the_end_of_a_pipe_is_told(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(writing)
    writer = StreamWriter(str(tmp_path), "stdout")

    assert writer.splice(reading, 100) == 0
    os.close(reading)
    writer.close()


def test_an_empty_pipe_is_not_waited_for(tmp_path: Path, pipe: tuple[int, int]) -> None:
    writer = StreamWriter(str(tmp_path), "stdout", 4, 80)
    writer.write(memoryview(b"0123"))

    with pytest.raises(BlockingIOError):
        writer.splice(pipe[0], 100)

    writer.write(memoryview(b"45"))
    writer.close()
    assert b"".join(chunk.data for chunk in kept(tmp_path)) == b"012345"


def test_nothing_is_left_of_a_segment_that_nothing_came_for(tmp_path: Path, pipe: tuple[int, int]) -> None:
    writer = StreamWriter(str(tmp_path), "stdout", 4, 80)
    writer.write(memoryview(b"0123"))
    with pytest.raises(BlockingIOError):
        writer.splice(pipe[0], 100)

    writer.close()

    assert [path.name for path in tmp_path.iterdir()] == ["stdout"]


def test_a_full_disk_leaves_what_it_does_not_take_in_the_pipe(
    tmp_path: Path, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = StreamWriter(str(tmp_path), "stdout", 4, 80)
    writer.write(memoryview(b"0123"))
    os.write(pipe[1], b"4567")

    def refuse(*_arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(OSError, match="room"):
            writer.splice(pipe[0], 100)

    assert os.read(pipe[0], 100) == b"4567"
    assert writer.total == 4
    writer.close()
