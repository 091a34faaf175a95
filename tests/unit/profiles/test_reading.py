"""Reading a profile that a program may have written itself."""

import json
from typing import Any

import pytest

from pyexec.profiles.reading import LARGEST, Profile, Row, read_profile

GOOD: dict[str, Any] = {
    "mode": "calls",
    "unit": "seconds",
    "total": 1.5,
    "rows": [["f", "a.py", 3, 1, 1.5, 7]],
    "text": "1.500 s 100% f  a.py:3",
}


def read(**changes: Any) -> "Profile | str":
    return read_profile(json.dumps({**GOOD, **changes}).encode())


def test_what_was_measured_is_read() -> None:
    assert read() == Profile(
        mode="calls",
        unit="seconds",
        total=1.5,
        rows=(Row(function="f", file="a.py", line=3, own=1.0, total=1.5, count=7),),
        text="1.500 s 100% f  a.py:3",
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[" * 100_000, b"[]", b"null", b'{"mode": "calls"}', b'{"mode": [], "total": 1, "rows": {}}'],
)
def test_what_is_no_profile_is_said_to_be_none(content: bytes) -> None:
    assert read_profile(content) == "The profile cannot be read."


def test_one_that_is_too_large_is_not_looked_at() -> None:
    assert read_profile(b" " * (LARGEST + 1)) == "The profile is larger than a profile can be."


def test_what_kept_the_tool_from_it_is_told_in_short() -> None:
    said = read_profile(json.dumps({"failure": "x" * 5000}).encode())
    assert said == f"The profile could not be made: {'x' * 300}."


@pytest.mark.parametrize(
    "row", [None, 1, [], ["f", "a.py", 3], ["f", "a.py", "3", 1, 1, 1], [None, "a.py", 3, 1, 1, 1], {"function": "f"}]
)
def test_rows_of_another_form_are_left_out(row: object) -> None:
    profile = read(rows=[row, *GOOD["rows"]])
    assert isinstance(profile, Profile)
    assert [one.function for one in profile.rows] == ["f"]


def test_numbers_that_are_none_count_nothing_and_long_things_are_cut() -> None:
    row = ["f" * 1000, "\ud800", 3, float("inf"), "1", 10**400]
    profile = read(total=float("nan"), rows=[row] * 1000, text="t" * 100_000)
    assert isinstance(profile, Profile)
    assert (profile.total, len(profile.rows), len(profile.text)) == (0.0, 500, 20_000)
    assert profile.rows[0] == Row(function="f" * 300, file="\\ud800", line=3, own=0.0, total=0.0, count=0)
