"""Readers that read while a writer writes: in other processes, as it is in life."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyexec_guest import log
from tests.helpers.processes import eventually

TOTAL = 3_000_000
LINE = 10


def line(number: int) -> bytes:
    return b"%09d\n" % number


def write_it_all(folder: str) -> None:
    writer = log.StreamWriter(folder, "stdout", 40_000, 80_000)
    for start in range(0, TOTAL // LINE, 50):
        writer.write(memoryview(b"".join(map(line, range(start, start + 50)))))
    writer.close()


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes far more than is kept."""
    with subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import write_it_all; write_it_all({str(tmp_path)!r})"],
        cwd=Path(__file__).parents[3],
    ) as process:
        yield process
        process.kill()


def test_a_reader_that_races_with_the_writer_sees_true_bytes_only(
    tmp_path: Path, writer: subprocess.Popen[bytes]
) -> None:
    offset = 0
    received = 0
    ended = False
    while True:
        chunk = log.read(str(tmp_path), "stdout", offset, 9_990)
        assert chunk.start == offset + chunk.gap
        if chunk.data:
            first = chunk.start // LINE
            expected = b"".join(map(line, range(first, (chunk.start + len(chunk.data)) // LINE + 1)))
            skipped = chunk.start % LINE
            assert chunk.data == expected[skipped : skipped + len(chunk.data)]
            offset = chunk.start + len(chunk.data)
            received += len(chunk.data)
        elif ended:
            break
        else:
            ended = writer.poll() is not None
    assert offset == TOTAL
    assert received >= 40_000 + 70_000


def test_the_kept_bytes_never_take_more_than_their_share_of_the_disk(
    tmp_path: Path, writer: subprocess.Popen[bytes]
) -> None:
    most = 0

    def written() -> bool:
        nonlocal most
        most = max(most, sum(size_of(path) for path in tmp_path.iterdir()))
        return writer.poll() is not None

    eventually(written)

    assert most <= 40_000 + 80_000 + 80_000 // log.SEGMENTS


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
