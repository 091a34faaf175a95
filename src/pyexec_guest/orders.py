"""What is said between a fork server and who owns it: numbers and descriptors, nothing else.

Orders go over a SEQPACKET socket, one packet each: a sandbox's numbers, with its descriptors beside them. So no
sandbox can find in its memory, which all of them share from their common origin, whom another one is for. What
becomes of a sandbox is told on a pipe of its own, which its first process holds and nothing that it guards.
"""

import re
import struct
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from enum import IntEnum

MOST_DESCRIPTORS = 64
MOST_FOLDERS = 40
MOST_PLACES = 8 * 1024
MOST_TEXT = 16 * 1024


class OrderError(Exception):
    """The other side sent something that is no order, or no answer to one."""


@dataclass(frozen=True)
class Order:
    """A sandbox, in numbers. Sizes are bytes.

    With it go the guest's socket, the pipe on which its end is told, the pipes that are its standard output and error,
    and a `cgroup.procs` file for each control group that the sandbox shall enter. Before these come, where it has
    folders of the machine, their mounts, and before those a file that tells the place of each (`pack_places`): only
    the sandbox itself reads it.

    Attributes:
        number: Tells answers apart.
        user: The user that the sandbox is, as the fork server counts them; 0: the fork server's own.
        work_size: How much `/work` holds.
        work_files: How many files and folders it holds.
        temporary_size: How much `/tmp` holds.
        temporary_files: How many files and folders it holds.
        shared_size: How much `/dev/shm` holds.
        shared_files: How many files it holds.
        data: What one process may allocate.
        processes: How many there may be at once.
        open_files: How many descriptors a process may have.
        file_size: The largest file.
        folders: How many folders of the machine it has.
    """

    number: int
    user: int
    work_size: int
    work_files: int
    temporary_size: int
    temporary_files: int
    shared_size: int
    shared_files: int
    data: int
    processes: int
    open_files: int
    file_size: int
    folders: int = 0

    def check(self) -> None:
        """See that every limit is one: to the kernel a size of 0 means that there is none.

        Raises:
            OrderError: A number is out of range.
        """
        for name, value in vars(self).items():
            if name not in ("number", "user", "folders") and not 0 < value < _LIMIT_OF_LIMITS:
                raise OrderError(f"{name} is {value}; it must be more than 0 and less than {_LIMIT_OF_LIMITS}")
        if self.folders > MOST_FOLDERS:
            raise OrderError(f"folders is {self.folders}; it must be at most {MOST_FOLDERS}")
        if self.user >= _LIMIT_OF_USERS:
            raise OrderError(f"user is {self.user}; it must be less than {_LIMIT_OF_USERS}")


_LIMIT_OF_LIMITS = 1 << 50
_LIMIT_OF_USERS = (1 << 32) - 1
_ORDER = struct.Struct(f"<{len(fields(Order))}Q")
ORDER_BYTES = _ORDER.size


def pack_order(order: Order) -> bytes:
    """Return an order as it is sent."""
    return _ORDER.pack(*astuple(order))


def unpack_order(data: bytes) -> Order:
    """Return the order that has arrived.

    Raises:
        OrderError: It is none.
    """
    if len(data) != _ORDER.size:
        raise OrderError(f"an order of {len(data)} bytes; it has {_ORDER.size}")
    return Order(*_ORDER.unpack(data))


WORKSPACE = "/workspace"
PACKAGES = "/packages"
PLACES = (WORKSPACE, PACKAGES, "/code")
"""Where in a sandbox there may be a folder of the machine."""

NAMED = "/data"
"""Where there may be more, each under a name."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def is_name(name: str) -> bool:
    """Tell whether a folder may be called so in `NAMED`."""
    return _NAME.fullmatch(name) is not None


def is_place(place: str) -> bool:
    """Tell whether there may be a folder of the machine at that place."""
    folder, _, name = place.rpartition("/")
    return place in PLACES or (folder == NAMED and is_name(name))


def pack_places(places: "Sequence[str]") -> bytes:
    """Return the places of folders as they are told.

    Raises:
        OrderError: There are too many, the same twice, or one that is none.
    """
    for place in places:
        if not is_place(place):
            raise OrderError(f"{place!r} is no place for a folder")
    if len(places) > MOST_FOLDERS or len({*places}) < len(places):
        raise OrderError("too many folders, or two for one place")
    return "\0".join(places).encode("ascii")


def unpack_places(data: bytes, count: int) -> "list[str]":
    """Return the places of so many folders.

    Raises:
        OrderError: They are none.
    """
    places = data.decode("ascii", "replace").split("\0") if data else []
    if len(places) != count or not all(map(is_place, places)):
        raise OrderError("no places for these folders")
    return places


@dataclass(frozen=True)
class Answer:
    """What became of an order, `error` being an errno; number 0 is said once the fork server is ready.

    With a sandbox that has been made goes the pidfd of its first process. `text` says what is wrong with the fork
    server itself.
    """

    number: int
    error: int = 0
    text: str = ""


_ANSWER = struct.Struct("<Qi")
ANSWER_BYTES = _ANSWER.size + MOST_TEXT


def pack_answer(answer: Answer) -> bytes:
    """Return an answer as it is sent."""
    return _ANSWER.pack(answer.number, answer.error) + answer.text.encode("utf-8", "replace")[:MOST_TEXT]


def unpack_answer(data: bytes) -> Answer:
    """Return the answer that has arrived.

    Raises:
        OrderError: It is none.
    """
    if not _ANSWER.size <= len(data) <= ANSWER_BYTES:
        raise OrderError(f"an answer of {len(data)} bytes; it has {_ANSWER.size} to {ANSWER_BYTES}")
    number, error = _ANSWER.unpack_from(data)
    return Answer(number, error, data[_ANSWER.size :].decode("utf-8", "replace"))


class Stage(IntEnum):
    """The steps in which a sandbox is made."""

    DESCRIPTORS = 1
    CONTROL_GROUPS = 2
    NAMESPACES = 3
    MOUNTS = 4
    IDENTITY = 5
    LIMITS = 6
    PRIVILEGES = 7
    GUEST = 8
    RANDOMNESS = 9
    SYSTEM_CALLS = 10
    FOLDERS = 11


class News(IntEnum):
    """What is told of a sandbox."""

    READY = 1
    FAILED = 2
    ENDED = 3


@dataclass(frozen=True)
class Report:
    """One thing told of a sandbox.

    Attributes:
        news: READY once the guest is about to run, FAILED, or ENDED.
        value: FAILED: the `Stage`. ENDED: the guest's wait status.
        error: FAILED: an errno.
    """

    news: News
    value: int = 0
    error: int = 0


_REPORT = struct.Struct("<iii")
REPORT_BYTES = _REPORT.size


def pack_report(report: Report) -> bytes:
    """Return a report as it is written, in one piece."""
    return _REPORT.pack(report.news, report.value, report.error)


def unpack_report(data: bytes) -> Report:
    """Return the report that was read.

    Raises:
        OrderError: It is none.
    """
    if len(data) != _REPORT.size:
        raise OrderError(f"a report of {len(data)} bytes; it has {_REPORT.size}")
    news, value, error = _REPORT.unpack(data)
    try:
        return Report(News(news), value, error)
    except ValueError as unknown:
        raise OrderError(f"a report of the unknown kind {news}") from unknown
