"""The files of sessions: listed, read, written and deleted from outside, whatever a session's code has put there."""

import base64
import binascii
from dataclasses import dataclass
from typing import Literal

from anyio.to_thread import run_sync

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.limits import FileLimits
from pyexec.domain.principals import Principal
from pyexec.domain.text import legible
from pyexec.sessions.failures import refusing
from pyexec.sessions.listing import Listing, list_folder
from pyexec.sessions.paths import Place, parse_place
from pyexec.sessions.reading import read_piece, text_of
from pyexec.sessions.removing import remove
from pyexec.sessions.workspaces import Workspaces, opened
from pyexec.sessions.writing import Manner, Written, write_file
from pyexec.storage.artifacts import media_type_of

Encoding = Literal["text", "base64"]
_ANY_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A part of a file.

    Attributes:
        path: Of the file, from the workspace on.
        media_type: What is in it, guessed from its name; a type of text for nothing but text.
        size: Of the whole file, in bytes.
        offset: Where the part begins.
        data: Its bytes.
        text: The same as text; None where it is none, or was not to be.
        next_offset: Where the rest begins; None where there is none.
    """

    path: str
    media_type: str
    size: int
    offset: int
    data: bytes
    text: str | None
    next_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What was deleted, and how many files and folders that were."""

    path: str
    count: int


class SessionFiles:
    """Works on the files of sessions, for whom these belong to.

    Args:
        workspaces: Opens the workspaces.
        limits: How much one call may read and write.
        text_length: How many bytes of a text are read where the caller does not say.
    """

    def __init__(self, workspaces: Workspaces, limits: FileLimits, text_length: int) -> None:
        self._workspaces = workspaces
        self._limits = limits
        self._text_length = text_length

    async def list(
        self, principal: Principal, session_id: str, path: str = "", *, pattern: str | None, recursive: bool
    ) -> Listing:
        """List a folder of a workspace, as `listing.list_folder` does.

        Raises:
            NotFoundError: There is no such session or folder.
            InvalidArgumentError: The path or the pattern is not allowed.
        """

        def work() -> Listing:
            place = parse_place(path, session_id)
            with opened(self._workspaces, principal, session_id) as folder, refusing(place):
                return list_folder(folder.fd, place, pattern=pattern or None, recursive=recursive)

        return await run_sync(work)

    async def read(
        self,
        principal: Principal,
        session_id: str,
        path: str,
        *,
        offset: int = 0,
        length: int | None = None,
        encoding: Encoding | None = None,
    ) -> Content:
        """Read a part of a file: as text, if it is, unless the encoding is to be base64.

        Raises:
            NotFoundError: There is no such session or file.
            InvalidArgumentError: A value is not allowed, or it is to be text and is not.
        """
        most = self._limits.download
        if offset < 0:
            raise InvalidArgumentError(f"offset is {offset}; it must be 0 or more.")
        if length is not None and not 1 <= length <= most:
            raise InvalidArgumentError(
                f"length is {length}; it must be between 1 and {most} bytes.", hint="offset reads on from there."
            )
        text_length = length or (most if encoding == "base64" else min(most, self._text_length))
        wanted = text_length if encoding == "text" else length or most

        def work() -> Content:
            place = parse_place(path, session_id)
            with opened(self._workspaces, principal, session_id) as folder, refusing(place):
                piece = read_piece(folder.fd, place, offset, wanted, text_length)
            text = None if encoding == "base64" else text_of(piece.data, at_end=piece.at_end)
            if text is None and encoding == "text":
                raise InvalidArgumentError(f"{place.shown} is no UTF-8 text there.", hint="Read it as base64.")
            data = piece.data if text is None else text.encode("utf-8")
            following = offset + len(data)
            return Content(
                path=place.path,
                media_type=_type_of(place, text),
                size=piece.size,
                offset=offset,
                data=data,
                text=text,
                next_offset=following if following < piece.size else None,
            )

        return await run_sync(work)

    async def read_whole(self, principal: Principal, session_id: str, path: str) -> Content:
        """Read a whole file.

        Raises:
            NotFoundError: There is no such session or file.
            InvalidArgumentError: The path is not allowed, or the file is larger than one call may read.
        """
        content = await self.read(principal, session_id, path, length=self._limits.download)
        if content.next_offset is not None:
            raise InvalidArgumentError(
                f"{legible(content.path)[:120]!r} has {content.size} bytes; one call may read {self._limits.download}.",
                hint="download_file reads it by ranges, with offset and length.",
            )
        return content

    async def write(
        self, principal: Principal, session_id: str, path: str, content: str, *, encoding: Encoding, manner: Manner
    ) -> Written:
        """Write a file, and make the folders that it is to lie in. A new one appears whole or not at all.

        Raises:
            NotFoundError: There is no such session.
            InvalidArgumentError: A value is not allowed, or something has that name already.
            DiskFullError: The workspace is full.
        """
        data = _bytes_of(content, encoding)
        if len(data) > self._limits.upload:
            raise InvalidArgumentError(
                f"content has {len(data)} bytes; one call may write {self._limits.upload}.",
                hint="Send the beginning, and the rest piece by piece with append=true.",
            )
        return await self.write_bytes(principal, session_id, path, data, manner=manner)

    async def write_bytes(
        self, principal: Principal, session_id: str, path: str, data: bytes, *, manner: Manner
    ) -> Written:
        """Do the same with any number of bytes.

        Raises:
            NotFoundError: There is no such session.
            InvalidArgumentError: A value is not allowed, or something has that name already.
            DiskFullError: The workspace is full.
        """

        def work() -> Written:
            place = parse_place(path, session_id)
            with opened(self._workspaces, principal, session_id) as folder, refusing(place):
                return write_file(folder, place, data, manner)

        return await run_sync(work)

    async def delete(self, principal: Principal, session_id: str, path: str, *, recursive: bool) -> Deleted:
        """Delete a file, a link itself, or with `recursive` a folder with all that is in it.

        Raises:
            NotFoundError: There is no such session, or nothing of that name.
            InvalidArgumentError: The path is not allowed, or it is a folder and that was not said.
        """

        def work() -> Deleted:
            place = parse_place(path, session_id)
            with opened(self._workspaces, principal, session_id) as folder, refusing(place):
                return Deleted(path=place.path, count=remove(folder.fd, place, recursive=recursive))

        return await run_sync(work)


def _bytes_of(content: str, encoding: Encoding) -> bytes:
    try:
        if encoding == "text":
            return content.encode("utf-8")
        return base64.b64decode("".join(content.split()), validate=True)
    except UnicodeEncodeError:
        raise InvalidArgumentError("content is no text: it has half of a character.", hint="Send base64.") from None
    except (binascii.Error, ValueError) as error:
        raise InvalidArgumentError(f"content is no base64: {error}.") from None


def _type_of(place: Place, text: str | None) -> str:
    """Return a type by the name, as far as the content does not belie it."""
    guessed = media_type_of(place.name)
    if text is not None:
        return "text/plain" if guessed == _ANY_TYPE else guessed
    return _ANY_TYPE if guessed.startswith("text/") else guessed
