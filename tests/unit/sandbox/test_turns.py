"""Nothing that a guest says is believed: it is a turn, or a breach."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyexec.domain.turns import Display, LateText, Part, Turn
from pyexec.sandbox.turns import BreachError, TurnReader, read_turn, tidy
from pyexec_guest import protocol

ID = "ab" * 16
LEAVES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800")
)
JSON: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
NAMES = ["t", "turn", "n", "k", "kind", "data", "chart", "table", "status", "failure", "notes", "value", "at", "info"]
VALUES = JSON | st.sampled_from([ID, "event", "done", "late", "display", "told", "ok", 1, 2])
FRAMES = st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES), max_size=5)


def event(number: int, **fields: Any) -> dict[str, Any]:
    return {"t": "event", "turn": ID, "n": number, "k": "display", "kind": "text", **fields}


def done(number: int, **fields: Any) -> dict[str, Any]:
    return {"t": "done", "turn": ID, "n": number, "status": "ok", "exit_code": 0, **fields}


def read(*frames: dict[str, Any]) -> Turn:
    reader = TurnReader(ID)
    for frame in frames:
        reader.take(frame)
    return reader.result()


@given(FRAMES)
def test_whatever_it_says_is_a_turn_or_a_breach(frames: list[dict[str, Any]]) -> None:
    reader = TurnReader(ID)
    for frame in frames:
        try:
            reader.take(frame)
        except BreachError:
            break
    turn = reader.result()
    # What comes of it is text that every reader can take, and JSON that every reader can parse.
    json.dumps([display.chart for display in turn.displays], allow_nan=False)
    repr(turn).encode("utf-8")


@given(JSON)
def test_a_tidy_value_is_json_for_everybody(value: Any) -> None:
    text = json.dumps(tidy(value), allow_nan=False)
    assert "NaN" not in text or "NaN" in repr(value)
    text.encode("utf-8")


def test_what_others_would_misread_is_text() -> None:
    assert tidy({"a": math.nan, "b": -math.inf, "c": 2**53, "d": 1.5}) == {
        "a": "nan",
        "b": "-inf",
        "c": "9007199254740992",
        "d": 1.5,
    }


def test_a_turn_is_its_events_and_one_terminal_frame() -> None:
    turn = read(
        event(1, kind="html", data={"text/html": {"text": "<b>"}}, at=[3, 0]),
        event(2, k="told", bytes=7),
        done(3, value="4", value_type="int", notes=["a"], failure={"type": "E", "message": "m", "traceback": "t"}),
    )
    assert turn.displays == (
        Display(number=1, kind="html", parts=(Part(media_type="text/html", text="<b>"),), stdout_at=3),
    )
    assert (turn.status, turn.value, turn.value_type, turn.notes, turn.told_bytes) == ("ok", "4", "int", ("a",), 7)
    assert turn.failure is not None
    assert (turn.failure.type, turn.failure.line) == ("E", None)


@pytest.mark.parametrize(
    "frames",
    [
        [event(2)],
        [event(1), event(1)],
        [event(1), done(1)],
        [event(True)],
        [event("1")],  # type: ignore[arg-type]
        [done(1), done(2)],
        [done(1), event(2)],
        [{**event(1), "turn": "cd" * 16}],
        [{**done(1), "turn": None}],
        [{"t": "hello", "turn": ID}],
        [event(1, k="stdout")],
        [{"t": "late", "turn": ID, "k": "told"}],
    ],
    ids=[
        "too high", "twice", "terminal not next", "a boolean", "a text", "two terminals", "after the terminal",
        "another turn", "terminal of no turn", "hello", "unknown event", "unknown news",
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_breach(frames: list[dict[str, Any]]) -> None:
    with pytest.raises(BreachError):
        read(*frames)


def test_late_news_may_come_after_the_end_and_is_told_apart() -> None:
    turn = read(
        done(1),
        {"t": "late", "turn": ID, "k": "stdout", "text": "late"},
        {"t": "late", "turn": ID, "k": "display", "kind": "text", "data": {"text/plain": {"text": "5"}}},
    )
    assert turn.late == (LateText(stream="stdout", text="late"),)
    assert [display.late for display in turn.displays] == [True]


def test_a_turn_without_an_end_has_no_status() -> None:
    assert read(event(1)).status is None


@pytest.mark.parametrize(
    "data",
    [
        {"image/png": {"base64": "no base64!"}},
        {"image/png": {"base64": 5}},
        {"image/png": "text"},
        {"a\nb": {"text": "x"}},
        {"text/csv": {"file": None}},
        [],
        None,
    ],
)
def test_forms_that_make_no_sense_are_left_out(data: Any) -> None:
    assert read(event(1, data=data)).displays[0].parts == ()


def test_bytes_and_files_are_forms_too() -> None:
    parts = read(event(1, data={"image/png": {"base64": "aGk="}, "text/csv": {"file": "t.csv", "size": 9}}))
    assert parts.displays[0].parts == (
        Part(media_type="image/png", data=b"hi", size=2),
        Part(media_type="text/csv", file="t.csv", size=9),
    )


def write(folder: Path, *frames: dict[str, Any], more: bytes = b"") -> None:
    (folder / "frames").write_bytes(b"".join(protocol.encode(frame) for frame in frames) + more)


def test_a_turn_is_read_from_what_the_keeper_wrote(tmp_path: Path) -> None:
    assert read_turn(tmp_path) is None
    write(tmp_path, {"t": "turn", "turn": ID})
    assert read_turn(tmp_path) == Turn()
    write(tmp_path, {"t": "turn", "turn": ID}, {"t": "hello", "v": 1}, event(1), done(2, value="1"))
    turn = read_turn(tmp_path)
    assert turn is not None
    assert (turn.status, turn.value, len(turn.displays)) == ("ok", "1", 1)


@given(st.binary(max_size=200))
def test_whatever_lies_in_the_file_is_a_turn(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    write(folder, {"t": "turn", "turn": ID}, event(1), more=data)
    turn = read_turn(folder)
    assert turn is not None
    assert len(turn.displays) == 1
    assert turn.status is None


def test_a_breach_in_the_file_is_said_and_what_came_before_it_counts(tmp_path: Path) -> None:
    write(tmp_path, {"t": "turn", "turn": ID}, event(1), event(5), done(6))
    turn = read_turn(tmp_path)
    assert turn is not None
    assert (turn.status, len(turn.displays)) == (None, 1)
    assert turn.broken == "frame 5 where 2 was due"


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"t": "turn", "turn": ID})
    (tmp_path / "frames").rename(tmp_path / "elsewhere")
    (tmp_path / "frames").symlink_to(tmp_path / "elsewhere")
    assert read_turn(tmp_path) is None
