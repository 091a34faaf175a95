"""Files that a guest sends, written down for the owner of an execution. Nothing about them is believed."""

import base64
import binascii
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

LARGEST = 64 * 1024 * 1024
TOGETHER = 128 * 1024 * 1024
MOST = 200
MOST_PIECES = 2000
PIECE_CHARACTERS = 2 * 1024 * 1024
NAME_CHARACTERS = 400
NAME_BYTES = 180
_SEPARATOR = "__"


class FileBreachError(Exception):
    """The guest sent what no guest of ours sends as a file."""


@dataclass
class _Incoming:
    """A file of which the last piece has not come yet; without a descriptor it is not kept."""

    name: str
    part: str
    fd: "int | None"
    size: int = 0


class IncomingFiles:
    """Writes the files that one turn sends into a folder.

    A file appears when it is complete, under one plain name that no other has. Caps are kept here: what goes beyond
    them is a breach. A file that cannot be written, as on a full disk, is left out.

    Args:
        folder: Where they are put; it is made when the first one comes. Nobody else may write there.
    """

    def __init__(self, folder: str) -> None:
        self._path = folder
        self._folder = -1
        self._current: _Incoming | None = None
        self._room = TOGETHER
        self._count = 0
        self._pieces = 0

    def take(self, frame: "Mapping[str, Any]") -> "dict[str, Any]":
        """Take a piece; return what may be noted of it: with the last one, under which name the file is kept.

        Raises:
            FileBreachError: It is no piece of ours; what has come of its file is gone.
        """
        try:
            return self._take(frame)
        except FileBreachError:
            self._drop()
            raise

    def close(self) -> None:
        """Let go; a file of which something is missing is removed."""
        if self._folder >= 0:
            self._drop()
            os.close(self._folder)
            self._folder = -1

    def _take(self, frame: "Mapping[str, Any]") -> "dict[str, Any]":
        name, data, size = _fields_of(frame)
        self._pieces += 1
        if self._pieces > MOST_PIECES:
            raise FileBreachError(f"more than {MOST_PIECES} pieces of files")
        current = self._current
        if current is None:
            current = self._current = self._begin(name)
        if name != current.name:
            raise FileBreachError("a piece of another file before the last one of the first")
        current.size += len(data)
        self._room -= len(data)
        if current.size > LARGEST or self._room < 0:
            raise FileBreachError(f"a file of more than {LARGEST} bytes, or more than {TOGETHER} bytes of files")
        if current.fd is not None and not _write(current.fd, data):
            self._give_up(current)
        if size is None:
            return {"name": name}
        if size != current.size:
            raise FileBreachError(f"a file of {current.size} bytes that is said to have {size}")
        kept = self._finish(current)
        self._current = None
        return {"name": name, "as": kept, "size": size}

    def _begin(self, name: str) -> _Incoming:
        self._count += 1
        if self._count > MOST:
            raise FileBreachError(f"more than {MOST} files")
        part = f".incoming-{self._count}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            if self._folder < 0:
                self._folder = _made(self._path)
            return _Incoming(name, part, os.open(part, flags, 0o600, dir_fd=self._folder))
        except OSError:
            return _Incoming(name, part, None)

    def _finish(self, current: _Incoming) -> "str | None":
        """Give a complete file its name; return it, None where it could not be kept."""
        if current.fd is None:
            return None
        os.close(current.fd)
        current.fd = None
        plain = plain_name(current.name)
        try:
            for number in range(1, MOST + 2):
                name = plain if number == 1 else _numbered(plain, number)
                with suppress(FileExistsError):
                    os.link(current.part, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                    return name
        except OSError:
            return None
        finally:
            self._remove(current.part)
        return None

    def _give_up(self, current: _Incoming) -> None:
        if current.fd is not None:
            os.close(current.fd)
            current.fd = None
            self._remove(current.part)

    def _drop(self) -> None:
        if self._current is not None:
            self._give_up(self._current)
            self._current = None

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(name, dir_fd=self._folder)


def plain_name(path: str) -> str:
    """Return one name for the path of a file below a folder: `sub/a.csv` is `sub__a.csv`. Very long ones are cut."""
    name = path.replace("/", _SEPARATOR)
    encoded = name.encode("utf-8")
    if len(encoded) <= NAME_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    end = f"{dot}{suffix}" if stem and len(suffix) < 20 else ""
    return encoded[: NAME_BYTES - len(end.encode("utf-8"))].decode("utf-8", "ignore") + end


def _numbered(name: str, number: int) -> str:
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}-{number}{dot}{suffix}" if stem else f"{name}-{number}"


def _fields_of(frame: "Mapping[str, Any]") -> "tuple[str, bytes, int | None]":
    """Return a piece's name and data, and the size of the file with the last one."""
    name, data, size = frame.get("name"), frame.get("data"), frame.get("size")
    if not isinstance(name, str) or not is_path_below(name):
        raise FileBreachError("a file whose name is none")
    if not isinstance(data, str) or len(data) > PIECE_CHARACTERS:
        raise FileBreachError("a piece of a file that is none, or too large")
    if frame.get("last") is not True:
        size = None
    elif not isinstance(size, int) or isinstance(size, bool):
        raise FileBreachError("a file without a size")
    try:
        return name, base64.b64decode(data, validate=True), size
    except (binascii.Error, ValueError) as error:
        raise FileBreachError("a piece of a file that is no base64") from error


def is_path_below(path: str) -> bool:
    """Tell whether a text is the path of a file below some folder, none of its parts hidden, for people to read."""
    return (
        0 < len(path) <= NAME_CHARACTERS
        and path.isprintable()
        and "\\" not in path
        and all(part and not part.startswith(".") for part in path.split("/"))
        and _is_encodable(path)
    )


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _write(fd: int, data: bytes) -> bool:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        return False
    return True


def _made(folder: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
