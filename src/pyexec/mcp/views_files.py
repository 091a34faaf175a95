"""From files of sessions to structured results."""

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcp_types import BlobResourceContents, ContentBlock, EmbeddedResource, ImageContent

from pyexec.domain.text import legible
from pyexec.mcp import results_files as results
from pyexec.mcp.views import iso_time
from pyexec.sessions.paths import uri_of

if TYPE_CHECKING:
    from pyexec.sessions.changes import Changes
    from pyexec.sessions.files import Content, Deleted
    from pyexec.sessions.listing import Entity, Listing
    from pyexec.sessions.writing import Written

PICTURE_BYTES = 1_000_000
_LATEST = 253_402_300_800.0
"""The year 10000: a program may give its files any time."""

_PICTURES: tuple[tuple[str, Callable[[bytes], bool]], ...] = (
    ("image/png", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", lambda data: data.startswith(b"\xff\xd8\xff")),
    ("image/gif", lambda data: data.startswith((b"GIF87a", b"GIF89a"))),
    ("image/webp", lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP"),
)


def listing(session_id: str, found: "Listing") -> results.FileListing:
    """Return the result of `list_files`."""
    rows = [_row(session_id, one) for one in found.entities]
    return results.FileListing(files=rows, total=found.total, complete=found.complete)


def content(session_id: str, found: "Content", *, asked: str | None) -> results.FileContent:
    """Return the result of `download_file`; what is no text is put beside it, as a picture where it is one."""
    uri = uri_of(session_id, found.path)
    encoded = None if found.text is not None else base64.b64encode(found.data).decode("ascii")
    result = results.FileContent(
        path=legible(found.path),
        uri=uri,
        media_type=found.media_type,
        size=found.size,
        offset=found.offset,
        encoding="text" if encoded is None else "base64",
        content=encoded if asked == "base64" else found.text,
        next_offset=found.next_offset,
    )
    if encoded is not None:
        picture = _picture(found) if asked is None else None
        result.blocks.append(_block(uri, found.media_type, encoded, picture))
        result.media_type = picture or result.media_type
    return result


def written(session_id: str, file: "Written") -> results.FileWritten:
    """Return the result of `upload_file`."""
    uri = uri_of(session_id, file.path)
    return results.FileWritten(path=legible(file.path), uri=uri, size=file.size, created=file.created)


def deleted(gone: "Deleted") -> results.FileDeleted:
    """Return the result of `delete_file`."""
    return results.FileDeleted(path=legible(gone.path), count=gone.count)


def changed_files(session_id: str, changes: "Changes") -> list[results.ChangedFile]:
    """Return the files that a turn has changed, for its result."""
    return [
        results.ChangedFile(
            path=legible(one.path),
            size=one.size,
            change=one.change,
            uri=None if one.change == "deleted" else uri_of(session_id, one.path),
        )
        for one in changes.files
    ]


def _row(session_id: str, one: "Entity") -> results.FileRow:
    return results.FileRow(
        path=legible(one.path),
        kind=one.kind,
        size=one.size,
        modified=iso_time(one.modified) if 0 <= one.modified < _LATEST else None,
        uri=uri_of(session_id, one.path) if one.kind == "file" else None,
    )


def _picture(found: "Content") -> str | None:
    """Return the type of a picture that is there whole, by what it really is."""
    if found.offset or found.next_offset is not None or len(found.data) > PICTURE_BYTES:
        return None
    return next((media_type for media_type, fits in _PICTURES if fits(found.data)), None)


def _block(uri: str, media_type: str, encoded: str, picture: str | None) -> ContentBlock:
    if picture is not None:
        return ImageContent(type="image", mime_type=picture, data=encoded)
    blob = BlobResourceContents(uri=uri, mime_type=media_type, blob=encoded)
    return EmbeddedResource(type="resource", resource=blob)
