"""What is read out of lines and bars; the bars are in the words that tqdm and rich put on a pipe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyexec.domain.progress import MESSAGE_LENGTH, Progress
from pyexec.storage.bars import find_bar, find_line

Told = tuple[float, float | None, str | None]

PIECES = (
    b"::progress ,\n,\r,\x1b[A,\x1b[999A,\x1b, 50%|,| ,5/10, [,1e999,nan,-1,\xff\x00,/,%,12.0k,: ,it [00:01, ".split(
        b","
    )
)
HOSTILE = st.lists(st.sampled_from([*PIECES, b"9" * 400, "━━━━".encode()]), max_size=40).map(b"".join)


def told(progress: Progress | None) -> Told | None:
    return None if progress is None else (progress.current, progress.total, progress.message)


def line(data: bytes, *, at_start: bool = True, final: bool = False) -> Told | None:
    found = find_line(data, at_start=at_start, final=final)
    return None if found is None else told(found[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::progress 3/10 reading files", (3, 10, "reading files")),
        ("::progress 3/10", (3, 10, None)),
        ("::progress 3", (3, None, None)),
        ("::progress 3 files read", (3, None, "files read")),
        ("::progress 40% almost half", (40, 100, "almost half")),
        ("::progress 0.5/1.5", (0.5, 1.5, None)),
        ("::progress  3 / 10 \t spaced", (3, 10, "spaced")),
        ("::progress 0/0 nothing to do", (0, None, "nothing to do")),
        ("::progress 1/2 a\x1b[31mred\x1b[0m\x07 b\u202ec", (1, 2, "ared b c")),
        ("::progress 1/2 " + "x" * 500, (1, 2, "x" * MESSAGE_LENGTH)),
        ("::progress 1/2 \udcff", (1, 2, "\N{REPLACEMENT CHARACTER}" * 3)),
    ],
)
def test_a_printed_line_tells_how_far_a_program_is(text: str, expected: Told) -> None:
    assert line(text.encode("utf-8", "surrogatepass") + b"\n") == expected


@pytest.mark.parametrize(
    "text",
    [
        "::progress",
        "::progress ",
        "::progress x/10",
        "::progress -1/10",
        "::progress nan/10",
        "::progress inf",
        f"::progress {10**400}",
        "::progress 1e999",
        "::progress 3/10%",
        "::progress 3/10reading",
        "::progressing 3/10",
        " ::progress 3/10",
        "say ::progress 3/10",
    ],
)
def test_what_only_looks_like_such_a_line_tells_nothing(text: str) -> None:
    assert line(text.encode() + b"\n", final=True) is None


def test_the_last_line_that_makes_sense_counts() -> None:
    assert line(b"::progress 1/3\n::progress 2/3 two\nother\n::progress -5\n") == (2, 3, "two")


def test_a_line_that_may_still_go_on_is_waited_for() -> None:
    half = b"::progress 1/10\n::progress 2/1"
    assert line(half) == (1, 10, None)
    assert line(half, final=True) == (2, 1, None)
    assert line(b"::progress 3/4 so\r") == (3, 4, "so"), "a carriage return ends it as well"


def test_the_middle_of_a_line_is_no_line() -> None:
    assert line(b"::progress 2/10\n", at_start=False) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\r 40%|####      | 2/5 [00:00<00:01, 3.1it/s]", (2, 5, None)),
        ("\rreading: 100%|██████████| 5/5 [00:01<00:00]\n", (5, 5, "reading")),
        ("\rdl: x:  36%|███▋      | 1.23M/3.40M [00:00<00:00, 3.6GB/s, loss=0.1]", (1_230_000, 3_400_000, "dl: x")),
        ("\r:  1%|| 1.20k/120k [00:00<?, ?it/s]", (1200, 120_000, None)),
        ("\r 30%|▌ | 0.30000000000000004/1.0 [00:00<00:00]", (0.30000000000000004, 1, None)),
        ("\r12it [00:00, 1525201.45it/s]", (12, None, None)),
        ("\rlines: 12.0kit [1:00:00, 1.80Git/s]", (12_000, None, "lines")),
        ("\r120MB [00:01, 3MB/s]", (120_000_000, None, None)),
        ("\r12MB [00:01, 3MB/s]", (12, None, None)),
        ("a word\n\r 40%|####      | 2/5 [00:00<00:01]\n\nand others\n", (2, 5, None)),
    ],
)
def test_a_bar_of_tqdm_is_read(text: str, expected: Told) -> None:
    assert told(find_bar(text.encode())) == expected


def bar(name: str, current: int, total: int) -> str:
    return f"\r{name}: {100 * current // total:3d}%|###| {current}/{total} [00:00<00:00]"


def inner(name: str, current: int, total: int) -> str:
    return f"\n{bar(name, current, total)}\x1b[A"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (bar("outer", 1, 3) + inner("inner", 4, 4), (1, 3, "outer")),
        (bar("outer", 1, 3) + inner("inner", 1, 4) + "\n\r     \x1b[A" + bar("outer", 2, 3), (2, 3, "outer")),
        (bar("outer", 1, 3) + inner("inner", 3, 4) + bar("inner", 4, 4) + "\n", (1, 3, "outer")),
        (bar("outer", 1, 3) + "\n" + bar("inner", 3, 4), (1, 3, "outer")),
        (bar("outer", 1, 3) + inner("a", 1, 4) + f"\n\n{bar('b', 1, 9)}\x1b[A\x1b[A", (1, 3, "outer")),
        (inner("inner", 3, 4) + inner("inner", 4, 4), (4, 4, "inner")),
        (bar("one", 2, 3) + bar("one", 3, 3) + "\n" + bar("two", 0, 9), (0, 9, "two")),
        (bar("one", 2, 3) + bar("one", 3, 3) + "\n", (3, 3, "one")),
        (bar("one", 3, 3) + "\r      \r" + bar("two", 1, 2), (1, 2, "two")),
    ],
    ids=["inside", "cleared", "left standing", "half drawn", "three deep", "outer unseen", "next", "ended", "gone"],
)
def test_of_bars_within_bars_the_outer_one_counts_and_of_one_after_the_other_the_later(
    text: str, expected: Told
) -> None:
    assert told(find_bar(text.encode())) == expected


RED, OFF = "\x1b[31m", "\x1b[0m"
FULL = f"{RED}━━━━━━━━━━{OFF}"
HALF = f"{RED}━━━━╸{OFF}\x1b[90m━━━━━{OFF}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"\r\x1b[2K{RED}Down: load{OFF} {HALF} \x1b[35m 50%{OFF} \x1b[36m0:00:01{OFF}", (50, 100, "Down: load")),
        (f"\r\x1b[2K{HALF} 50% 0:00:01 1,000/2,000", (1000, 2000, None)),
        (f"get {HALF} 1.5/3.0 kB 9.7 kB/s", (1500, 3000, "get")),
        (f"get {HALF} 1.5/3.0 MiB", (1_572_864, 3_145_728, "get")),
        (f"get {HALF} 7/? ", (7, None, "get")),
        (f"3/10 step {HALF}", (3, 10, "step")),
        (f"Working... {'━' * 10} 100% 0:00:00\n", (100, 100, "Working...")),
        (f"one {FULL} 100%\ntwo {HALF} 40%\nthree {HALF} 0%", (40, 100, "two")),
        (f"one {HALF} 10%\ntwo {HALF} 0%\r\x1b[2K\x1b[1A\x1b[2Kone {HALF} 20%\ntwo {HALF} 5%", (20, 100, "one")),
        (f"one {HALF} 10%\r\x1b[2Kone {HALF} ", (10, 100, "one")),
        (f"one {FULL} 10/10\ntwo {HALF} 7/?", (10, 10, "one")),
        (f"goes on {HALF} ", None),
    ],
)
def test_a_bar_of_rich_is_read(text: str, expected: Told | None) -> None:
    assert told(find_bar(text.encode())) == expected


def test_the_bar_that_was_drawn_last_counts_whoever_drew_it() -> None:
    rich, tqdm = f"\r\x1b[2Krich {HALF} 50%\n", bar("tqdm", 1, 4)
    assert told(find_bar((rich + tqdm).encode())) == (1, 4, "tqdm")
    assert told(find_bar((tqdm + "\n" + rich).encode())) == (50, 100, "rich")


@pytest.mark.parametrize("text", ["", "plain\n" * 50, "100%", "a | b | 3/4 [", "━━", "ten % | of | 3/4"])
def test_what_is_no_bar_tells_nothing(text: str) -> None:
    assert find_bar(text.encode()) is None


@given(HOSTILE)
def test_whatever_is_printed_gives_numbers_that_every_client_can_hold_or_nothing(data: bytes) -> None:
    found = find_line(data, at_start=True, final=True)
    for progress in (find_bar(data), found and found[1]):
        if progress is not None:
            assert 0 <= progress.current < float("inf")
            assert progress.total is None or 0 < progress.total < float("inf")
            assert progress.message is None or (progress.message.isprintable() and len(progress.message) <= 200)
