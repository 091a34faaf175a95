"""A turn: one piece of code that a guest ran, what it showed and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

TurnStatus = Literal["ok", "error", "exited", "interrupted", "refused"]
TURN_STATUSES: tuple[TurnStatus, ...] = get_args(TurnStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One form of a display: its text, its bytes, or the name of the file in which it lies (`size` bytes)."""

    media_type: str
    text: str | None = None
    data: bytes | None = None
    file: str | None = None
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """Something that was shown.

    Attributes:
        number: The number of the event.
        kind: What it is: `figure`, `picture`, `table`, `html`, …
        parts: The forms in which it can be read.
        width, height: Of a picture, in pixels; 0 where they are not known.
        chart: The numbers behind a figure.
        table: Columns, shape and first rows of a table.
        stdout_at, stderr_at: How many bytes each stream had had by then.
        late: Whether it came from a thread whose turn was over.
    """

    number: int
    kind: str
    parts: tuple[Part, ...]
    width: int = 0
    height: int = 0
    chart: Mapping[str, Any] | None = None
    table: Mapping[str, Any] | None = None
    stdout_at: int = 0
    stderr_at: int = 0
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An exception that ended a turn; `line` is that of the code it points to."""

    type: str
    message: str
    traceback: str
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFile:
    """A file that the code has created or changed in its working directory.

    Attributes:
        path: Where it is, from that directory on.
        size: In bytes.
        change: Which of the two.
        kept_as: Its name among the files of the execution, where it has been handed over.
    """

    path: str
    size: int
    change: Literal["created", "changed"]
    kept_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LateText:
    """What a thread printed when its turn was over."""

    stream: Literal["stdout", "stderr"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is known of a turn. `status` is None while it runs, and for ever when the guest ended before it said.

    Attributes:
        exit_code: What a script would have ended with: 0, 1 after an exception, the code of `sys.exit`.
        value, value_type: The last expression's value as text, and its type's name.
        left_out: How many events were too large altogether.
        files: What it created or changed, by path; not all, where that is much.
        told_bytes: How much of the end of stderr only repeats `failure`, for those who read streams alone.
        broken: Why the guest's word is not taken any further, when it is not.
    """

    status: TurnStatus | None = None
    exit_code: int | None = None
    value: str | None = None
    value_type: str | None = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    displays: tuple[Display, ...] = ()
    late: tuple[LateText, ...] = ()
    left_out: int = 0
    files: tuple[TurnFile, ...] = ()
    told_bytes: int = 0
    seconds: float = 0.0
    peak_memory: int = 0
    broken: str | None = None
