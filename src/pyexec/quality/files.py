"""The files of a user that are looked at, and the only way in which one of them is replaced."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError


def read_source(path: Path, most: int) -> bytes:
    """Return the content of a file.

    Raises:
        InvalidArgumentError: It cannot be read, or is larger than `most` bytes.
    """
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InvalidArgumentError(f"path {path} cannot be read: {error.strerror}.") from error
    if len(content) > most:
        raise InvalidArgumentError(f"path {path} is larger than {most // 2**20} MB, the most that is looked at.")
    return content


def replace_source(path: Path, before: bytes, after: bytes) -> None:
    """Put new content in place of old in one step; mode and owner stay, and a link goes on leading to the file.

    Raises:
        InvalidArgumentError: The file is no longer what was read, or cannot be written.
    """
    target = path.resolve()
    try:
        if target.read_bytes() != before:
            raise InvalidArgumentError(f"path {path} was changed by somebody else meanwhile.", hint="Call again.")
        _replace(target, after)
    except OSError as error:
        raise InvalidArgumentError(f"path {path} cannot be written: {error.strerror}.") from error


def _replace(target: Path, content: bytes) -> None:
    was = target.stat()
    fd, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            if (was.st_uid, was.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):  # Only root may give files away.
                    os.fchown(fd, was.st_uid, was.st_gid)
            os.fchmod(fd, stat.S_IMODE(was.st_mode))
            os.fsync(fd)
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
