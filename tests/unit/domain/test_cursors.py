import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyexec.domain.cursors import Cursor
from pyexec.domain.errors import InvalidArgumentError

OFFSETS = st.integers(min_value=0, max_value=2**63 - 1)


@given(OFFSETS, OFFSETS)
def test_a_cursor_comes_back_as_it_was(stdout: int, stderr: int) -> None:
    cursor = Cursor(stdout=stdout, stderr=stderr)

    assert Cursor.decode(cursor.encode()) == cursor


@given(OFFSETS, OFFSETS)
def test_a_cursor_is_text_that_needs_no_quoting_anywhere(stdout: int, stderr: int) -> None:
    text = Cursor(stdout=stdout, stderr=stderr).encode()

    assert text.replace("-", "").replace("_", "").isalnum()
    assert text.isascii()


@given(st.text())
@example("")
@example("=")
@example("\udcff")
@example("\N{SUPERSCRIPT TWO}")
@example("MTowOjA=extra")
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    try:
        cursor = Cursor.decode(text)
    except InvalidArgumentError:
        return
    assert cursor.stdout >= 0
    assert cursor.stderr >= 0


@given(st.text(alphabet="0123456789:-+. \N{SUPERSCRIPT TWO}\N{ARABIC-INDIC DIGIT THREE}", max_size=80))
@example("1:0:0:0")
@example("1:0")
@example("2:0:0")
@example("1:-1:0")
@example("1: 1:0")
@example("1:" + "9" * 80 + ":0")
def test_what_is_encoded_like_a_cursor_is_one_or_refused(raw: str) -> None:
    text = base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")

    try:
        cursor = Cursor.decode(text)
    except InvalidArgumentError:
        return
    assert raw == f"1:{raw.split(':')[1]}:{raw.split(':')[2]}"
    assert cursor == Cursor(stdout=int(raw.split(":")[1]), stderr=int(raw.split(":")[2]))


def test_a_refused_cursor_is_shown_shortened_and_says_what_to_pass() -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        Cursor.decode("!" * 1000)

    assert "!" * 40 in refusal.value.message
    assert "!" * 41 not in refusal.value.message
    assert "next_cursor" in refusal.value.sentence()
