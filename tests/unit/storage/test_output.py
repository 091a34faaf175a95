import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyexec.domain.cursors import Cursor
from pyexec.storage import output
from pyexec.storage.output import Output, fold, read_output, take_head, take_tail
from pyexec_guest.log import StreamWriter

LEFT_OUT = re.compile(r"\n\[\.\.\. \d+ bytes left out \.\.\.\]\n")
CHARACTERS = st.characters(codec="utf-8", exclude_characters="\r\N{REPLACEMENT CHARACTER}")
LINES = st.text(CHARACTERS | st.sampled_from("\nxyé€😀"), max_size=120)
BARS = st.lists(st.sampled_from(["\r", "\n", "10%", "|###  |", "é€😀", " "]), max_size=40).map("".join)
BINARY = st.lists(
    st.binary(max_size=6) | st.sampled_from([b"\n", "é".encode(), "😀".encode(), b"\xf0\x9f", b"\x80\x80\x80\x80"]),
    max_size=30,
).map(b"".join)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def store(folder: Path, stdout: bytes = b"", stderr: bytes = b"", *, head: int = 10**6, tail: int = 10**6) -> None:
    for name, data in (("stdout", stdout), ("stderr", stderr)):
        for old in folder.glob(f"{name}*"):
            old.unlink()
        writer = StreamWriter(str(folder), name, head, tail)
        for start in range(0, len(data), 1000):
            writer.write(memoryview(data[start : start + 1000]))
        writer.close()


def read_on(folder: Path, max_bytes: int) -> Iterator[Output]:
    """Read from the beginning, answer by answer, until there is no more."""
    cursor = Cursor()
    while True:
        answer = read_output(folder, since=cursor, max_bytes=max_bytes, final=True)
        yield answer
        if answer.next_cursor == cursor:
            return
        cursor = answer.next_cursor


def carried(answer: Output) -> int:
    """How many bytes of output, as UTF-8, an answer brings."""
    return sum(len(LEFT_OUT.sub("", stream.text).encode()) for stream in (answer.stdout, answer.stderr))


# -- reading everything, piece by piece -----------------------------------------------------------------------------


@given(stdout=LINES, stderr=LINES, max_bytes=st.integers(min_value=8, max_value=300))
def test_answers_that_follow_each_other_are_the_whole_text(
    tmp_path_factory: pytest.TempPathFactory, stdout: str, stderr: str, max_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("output")
    store(folder, stdout.encode(), stderr.encode())

    answers = list(read_on(folder, max_bytes))

    assert "".join(answer.stdout.text for answer in answers) == stdout
    assert "".join(answer.stderr.text for answer in answers) == stderr


@given(stdout=BINARY, max_bytes=st.integers(min_value=8, max_value=60))
@example(stdout=b"\xff" * 40, max_bytes=8)
@example(stdout=b"\xed\xa0\x80", max_bytes=8)
def test_bytes_that_are_no_text_are_replaced_the_same_way_however_they_are_read(
    tmp_path_factory: pytest.TempPathFactory, stdout: bytes, max_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("output")
    stdout = stdout.replace(b"\r", b"")
    store(folder, stdout)

    text = "".join(answer.stdout.text for answer in read_on(folder, max_bytes))

    assert text == stdout.decode("utf-8", "replace")


@given(
    data=LINES.map(str.encode),
    cuts=st.lists(st.integers(min_value=1, max_value=50), max_size=10),
    max_bytes=st.integers(min_value=16, max_value=300),
)
def test_a_reader_beside_a_writer_gets_no_half_character_and_loses_none(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int], max_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("output")
    writer = StreamWriter(str(folder), "stdout")
    cursor = Cursor()
    text = ""
    for cut in cuts:
        writer.write(memoryview(data[writer.total : writer.total + cut]))
        answer = read_output(folder, since=cursor, max_bytes=max_bytes, final=False)
        text += answer.stdout.text
        cursor = answer.next_cursor
    writer.write(memoryview(data[writer.total :]))
    writer.close()
    while (answer := read_output(folder, since=cursor, max_bytes=max_bytes, final=True)).next_cursor != cursor:
        text += answer.stdout.text
        cursor = answer.next_cursor

    assert text == data.decode()


@pytest.mark.parametrize("max_bytes", [1, 2, 3, 4, 5])
def test_the_smallest_answer_still_brings_something(folder: Path, max_bytes: int) -> None:
    store(folder, "😀é€a".encode() * 3, "€😀".encode() * 3)

    answers = list(read_on(folder, max_bytes))

    assert answers[-1].next_cursor == Cursor(stdout=30, stderr=21)


def test_a_character_across_the_edge_of_what_is_looked_at_is_not_torn(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "WINDOW_BYTES", 100)
    store(folder, "€".encode() * 200)

    assert "".join(answer.stdout.text for answer in read_on(folder, 1000)) == "€" * 200
    assert "\N{REPLACEMENT CHARACTER}" not in read_output(folder, since=None, max_bytes=400, final=True).stdout.text


# -- never more than was asked for ----------------------------------------------------------------------------------


@given(stdout=LINES | BARS, stderr=LINES | BARS, max_bytes=st.integers(min_value=1, max_value=300), whole=st.booleans())
@example(stdout="x" * 5, stderr="\r" + "y" * 300, max_bytes=2, whole=False)
@example(stdout="\r" + "y" * 300, stderr="", max_bytes=1, whole=True)
def test_an_answer_is_never_longer_than_was_asked_for(
    tmp_path_factory: pytest.TempPathFactory, stdout: str, stderr: str, max_bytes: int, whole: bool
) -> None:
    folder = tmp_path_factory.mktemp("output")
    store(folder, stdout.encode(), stderr.encode())

    answer = read_output(folder, since=None if whole else Cursor(), max_bytes=max_bytes, final=True)

    assert carried(answer) <= max(max_bytes, 8)  # Less could not hold one character of each stream.


@pytest.mark.parametrize("since", [None, Cursor()], ids=["whole", "from a cursor"])
def test_bytes_that_are_no_text_do_not_make_an_answer_longer(folder: Path, since: Cursor | None) -> None:
    store(folder, b"\xff\xfe\x80" * 1000, b"\x80\n" * 1000)

    assert carried(read_output(folder, since=since, max_bytes=600, final=True)) <= 600


@given(stdout=LINES, stderr=LINES, max_bytes=st.integers(min_value=300, max_value=2000))
def test_what_fits_is_there_completely(
    tmp_path_factory: pytest.TempPathFactory, stdout: str, stderr: str, max_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("output")
    stdout, stderr = stdout[:30], stderr[:30]
    store(folder, stdout.encode(), stderr.encode())

    answer = read_output(folder, since=None, max_bytes=max_bytes, final=True)

    assert (answer.stdout.text, answer.stderr.text) == (stdout, stderr)
    assert answer.next_cursor == Cursor(stdout=len(stdout.encode()), stderr=len(stderr.encode()))
    assert not answer.truncated


def test_a_quiet_stream_leaves_its_share_to_the_other(folder: Path) -> None:
    store(folder, b"o" * 90, b"e" * 10)

    answer = read_output(folder, since=None, max_bytes=100, final=True)

    assert (len(answer.stdout.text), len(answer.stderr.text)) == (90, 10)


def test_a_loud_stdout_leaves_a_third_to_stderr(folder: Path) -> None:
    store(folder, b"o" * 5000, b"e" * 30)

    answer = read_output(folder, since=None, max_bytes=90, final=True)

    assert answer.stderr.text == "e" * 30


def test_a_loud_stderr_leaves_stdout_what_it_needs(folder: Path) -> None:
    store(folder, b"o" * 50, b"e" * 5000)

    answer = read_output(folder, since=None, max_bytes=90, final=True)

    assert answer.stdout.text == "o" * 50


# -- head and tail --------------------------------------------------------------------------------------------------


@given(data=st.text(CHARACTERS | st.sampled_from("\nxyé€😀"), min_size=40, max_size=200), max_bytes=st.integers(8, 60))
def test_a_long_stream_is_shown_by_its_head_and_its_tail(
    tmp_path_factory: pytest.TempPathFactory, data: str, max_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("output")
    raw = data.encode()
    store(folder, raw)

    shown = read_output(folder, since=None, max_bytes=max_bytes, final=True).stdout

    if not shown.omitted:
        assert shown.text.replace("\n[... 0 bytes left out ...]\n", "") == data
        return
    head, tail = shown.text.split(f"\n[... {shown.omitted} bytes left out ...]\n")
    assert data.startswith(head)
    assert data.endswith(tail)
    assert shown.next_offset == len(head.encode())
    assert len(head.encode()) + shown.omitted + len(tail.encode()) == len(raw)


def test_what_was_left_out_is_read_from_the_cursor(folder: Path) -> None:
    data = "".join(f"line {number}\n" for number in range(1000))
    store(folder, data.encode())

    first = read_output(folder, since=None, max_bytes=200, final=True)
    rest = read_output(folder, since=first.next_cursor, max_bytes=10**6, final=True)

    head = first.stdout.text.split("\n[... ")[0]
    assert head + rest.stdout.text == data
    assert first.truncated
    assert not rest.truncated


def test_what_is_no_longer_kept_is_a_gap_and_counts_in_the_total(folder: Path) -> None:
    store(folder, b"".join(b"%04d\n" % number for number in range(1000)), head=100, tail=800)

    head, tail, end = read_on(folder, 10**6)

    assert head.stdout.text.splitlines()[-1] == "0019"
    assert tail.stdout.text.splitlines()[-1] == "0999"
    assert tail.stdout.gap == 5000 - 100 - len(tail.stdout.text)
    assert {answer.stdout.total for answer in (head, tail, end)} == {5000}
    assert tail.truncated


def test_a_cursor_that_lies_in_a_gap_is_answered_from_where_the_kept_bytes_go_on(folder: Path) -> None:
    store(folder, b"0123456789" * 100, head=10, tail=80)

    answer = read_output(folder, since=Cursor(stdout=500), max_bytes=1000, final=True)

    assert answer.stdout.gap == answer.stdout.next_offset - len(answer.stdout.text) - 500
    assert answer.stdout.text.endswith("0123456789")


def test_a_cursor_beyond_the_end_brings_nothing_and_stays(folder: Path) -> None:
    store(folder, b"short")

    answer = read_output(folder, since=Cursor(stdout=999, stderr=5), max_bytes=100, final=True)

    assert answer.stdout.text == answer.stderr.text == ""
    assert answer.next_cursor == Cursor(stdout=999, stderr=5)


# -- progress bars --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"10%\r20%\r30%\n", b"30%\n"),
        (b"10%\r20%\r", b"20%"),
        (b"\r10%\r20%", b"20%"),
        (b"one\r\ntwo\r\n", b"one\ntwo\n"),
        (b"no bar\n", b"no bar\n"),
        (b"\r\r\n", b"\n"),
        (b"a\n10%\r20%\nb\n", b"a\n20%\nb\n"),
    ],
)
def test_a_line_that_was_written_over_is_shown_as_it_was_last(raw: bytes, shown: bytes) -> None:
    assert fold(raw) == shown


@given(BARS.map(str.encode))
def test_folding_leaves_no_carriage_return_and_every_line(data: bytes) -> None:
    folded = fold(data)

    assert b"\r" not in folded
    assert folded.count(b"\n") == data.count(b"\n")
    assert fold(folded) == folded
    assert len(folded) <= len(data)


def test_a_progress_bar_is_folded_for_reading_and_kept_in_the_log(folder: Path) -> None:
    raw = b"".join(b"\r%3d%%" % percent for percent in range(101)) + b"\ndone\n"
    store(folder, raw)

    assert read_output(folder, since=None, max_bytes=100, final=True).stdout.text == "100%\ndone\n"
    assert (folder / "stdout").read_bytes() == raw


# -- the two helpers ------------------------------------------------------------------------------------------------


@given((LINES | BARS).map(str.encode), st.integers(min_value=0, max_value=200))
def test_a_head_is_whole_characters_that_fit(data: bytes, budget: int) -> None:
    head, used = take_head(data, budget)

    assert len(head) <= budget
    assert 0 <= used <= len(data)
    head.decode()
    if b"\r" not in data:
        assert head == data[:used]


@given((LINES | BARS).map(str.encode), st.integers(min_value=0, max_value=200))
def test_a_tail_is_whole_characters_that_fit(data: bytes, budget: int) -> None:
    tail, begin = take_tail(data, budget)

    assert len(tail) <= budget
    assert 0 <= begin <= len(data)
    tail.decode()
    if b"\r" not in data:
        assert tail == data[begin:]


def test_a_bar_longer_than_the_room_is_cut_between_characters() -> None:
    head, used = take_head(b"\r" + "😀".encode() * 10, 7)

    assert head.decode() == "😀"
    assert used == 41
