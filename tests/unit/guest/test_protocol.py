import json
import struct
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyexec_guest.protocol import MAX_FRAME, SMALL_FRAME, Decoder, ProtocolError, encode

VALUES: st.SearchStrategy[Any] = st.none() | st.integers() | st.text(max_size=20) | st.lists(st.integers(), max_size=3)
MESSAGES = st.dictionaries(st.text(max_size=8), VALUES, max_size=3)


def frame(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


@given(st.lists(MESSAGES, max_size=4), st.lists(st.integers(min_value=0, max_value=400), max_size=8))
def test_messages_arrive_whole_and_in_order_however_the_bytes_are_split(
    messages: list[dict[str, Any]], cuts: list[int]
) -> None:
    data = b"".join(encode(message) for message in messages)
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    decoder = Decoder(MAX_FRAME)

    arrived = [message for start, end in pairwise(edges) for message in decoder.feed(data[start:end])]

    assert arrived == messages


@given(MESSAGES)
def test_a_frame_is_ascii_so_that_lone_surrogates_travel_too(message: dict[str, Any]) -> None:
    assert encode({**message, "text": "\udcff\ud800"})[4:].isascii()


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_garbage_is_messages_or_a_breach_and_nothing_else(pieces: list[bytes]) -> None:
    decoder = Decoder()

    try:
        messages = [message for piece in pieces for message in decoder.feed(piece)]
    except ProtocolError:
        return
    assert all(isinstance(message, dict) for message in messages)


@given(st.binary(max_size=60))
def test_a_frame_with_anything_in_it_is_a_message_or_a_breach(body: bytes) -> None:
    try:
        messages = Decoder().feed(frame(body))
    except ProtocolError:
        return
    assert messages == [json.loads(body)]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"1", b'"text"', b"null", b"{", b"\xff\xfe", b'{"a":}', b"[" * 60_000, b"1" * 60_000],
    ids=["empty", "list", "number", "text", "null", "cut off", "no utf-8", "no json", "deep", "long number"],
)
def test_what_is_not_an_object_is_a_breach(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        Decoder().feed(frame(body))


@given(st.integers(min_value=SMALL_FRAME + 1, max_value=2**32 - 1))
def test_a_frame_that_is_too_large_is_refused_before_it_arrives(size: int) -> None:
    with pytest.raises(ProtocolError, match=str(size)):
        Decoder().feed(struct.pack(">I", size))


def test_a_frame_of_the_largest_size_is_taken() -> None:
    body = json.dumps({"a": "x" * (SMALL_FRAME - len('{"a": ""}'))}).encode()
    assert len(body) == SMALL_FRAME

    assert Decoder().feed(frame(body)) == [json.loads(body)]
