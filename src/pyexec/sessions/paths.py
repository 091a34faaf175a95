"""Paths of files in a workspace, as callers write them, and their URIs."""

import os
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.text import legible

SCHEME = "workspace://"
INSIDE = "/workspace"
"""Where the workspace lies for the code that runs in its session."""

LONGEST_PATH = 4000
LONGEST_NAME = 255
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Place:
    """Where something lies in a workspace. Bytes of names that are no text are lone surrogates, as in `os.fsdecode`."""

    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path for the kernel; `.` is the workspace itself."""
        return "/".join(self.parts) or "."

    @property
    def shown(self) -> str:
        """The path for a message: short, and in one line."""
        text = repr(legible(self.path))
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 2]}…'"

    @property
    def parent(self) -> "Place":
        """The folder that it lies in."""
        return Place(self.parts[:-1])

    @property
    def name(self) -> str:
        """The last part; empty for the workspace itself."""
        return self.parts[-1] if self.parts else ""

    def below(self, path: str) -> "Place":
        """Return where a path leads that begins here, as the kernel has listed it."""
        return Place((*self.parts, *path.split("/")))


def parse_place(text: str, session_id: str, called: str = "path") -> Place:
    """Read a path that counts from the workspace, one from `/workspace` on, or the file's URI.

    Raises:
        InvalidArgumentError: It is none, leads out of the workspace, or belongs to another session.
    """
    if text.startswith(SCHEME):
        owner, _slash, rest = text.removeprefix(SCHEME).partition("/")
        if owner != session_id:
            raise InvalidArgumentError(f"{called} names the session {owner[:_SHOWN]!r}; session_id is {session_id!r}.")
        text = os.fsdecode(unquote_to_bytes(rest))
    elif text == INSIDE or text.startswith(f"{INSIDE}/"):
        text = text.removeprefix(INSIDE).lstrip("/")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{called} is no text: {ascii(text)[:_SHOWN]}.") from None
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if text.startswith("/") or ".." in parts or b"\0" in encoded:
        raise InvalidArgumentError(
            f"{called} is {legible(text)[:_SHOWN]!r}; it must stay within the session's folder.",
            hint="Paths count from that folder, which is /workspace for the code.",
        )
    if len(encoded) > LONGEST_PATH or any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
        raise InvalidArgumentError(
            f"{called} is too long: a path may have {LONGEST_PATH} bytes, each name in it {LONGEST_NAME}."
        )
    return Place(parts)


def uri_of(session_id: str, path: str) -> str:
    """Return the URI of a file in a workspace; it names every file, also one whose name is no text."""
    return f"{SCHEME}{session_id}/{quote(os.fsencode(path), safe='/')}"
