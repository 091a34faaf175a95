"""Length-prefixed JSON frames: how server, keeper and guest talk.

A frame is a four-byte big-endian length and that many bytes of UTF-8 JSON, always an object. Whoever reads treats
what arrives as hostile: the size is checked before anything is kept, and a breach ends the conversation.
"""

import json
import math
import struct
from collections.abc import Iterator
from typing import Any, cast

VERSION = 1
MAX_FRAME = 256 * 1024 * 1024
SMALL_FRAME = 64 * 1024
GUEST_FRAME = 16 * 1024 * 1024
"""The largest frame between a guest and whoever runs it; there and back."""

_LENGTH = struct.Struct(">I")
_encoded = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


class ProtocolError(Exception):
    """The other side sent something that is not a frame of ours."""


def encode(message: "dict[str, Any]") -> bytes:
    """Return `message` as one frame."""
    body = _encoded(message).encode("ascii")
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """Turns bytes as they arrive into messages; holds at most one frame and what came with it."""

    def __init__(self, max_frame: int = SMALL_FRAME) -> None:
        self._max_frame = max_frame
        self._buffer = bytearray()

    @property
    def is_empty(self) -> bool:
        """Whether nothing has arrived of another frame."""
        return not self._buffer

    def feed(self, data: "bytes | memoryview") -> "list[dict[str, Any]]":
        """Add `data`; return the messages that are complete now.

        Raises:
            ProtocolError: A frame is too large, or is not a JSON object.
        """
        return list(self.messages(data))

    def messages(self, data: "bytes | memoryview") -> "Iterator[dict[str, Any]]":
        """Do the same one by one, so that a breach does not take away what came before it."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._buffer)
            if size > self._max_frame:
                raise ProtocolError(f"frame of {size} bytes; at most {self._max_frame} are allowed")
            end = _LENGTH.size + size
            if len(self._buffer) < end:
                break
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield _parse(body)


def _parse(body: bytes) -> "dict[str, Any]":
    try:
        message = _decoded(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ProtocolError("frame is not JSON") from error
    if not isinstance(message, dict):
        raise ProtocolError("frame is not a JSON object")
    return cast("dict[str, Any]", message)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # 1e999, say, which nobody could send on.
        raise ValueError(f"{text[:20]} is too large")
    return number


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


_decoded = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse).decode
