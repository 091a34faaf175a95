"""Reading what was measured. The program may have written there itself: nothing is trusted."""

import json
import math
from dataclasses import dataclass
from typing import Any

from pyexec.domain.text import legible
from pyexec.profiles.modes import MODES, TOOLS, Mode, Unit

RESULT = "profile.json"
FLAME_GRAPH = "flamegraph.html"
LARGEST = 2 * 1024 * 1024
_MOST_ROWS = 500
_LONGEST_NAME = 300
_LONGEST_TEXT = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A function, or for memory a line of one: its own share, with that of what it called, and how often.

    `file` is relative to the directory, the script, the packages or the standard library, where it lies in one; it is
    empty for what is not written in Python. `count` are calls, or allocations.
    """

    function: str
    file: str
    line: int
    own: float
    total: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What was measured: the whole, the rows by their own share, and the largest calls as indented lines."""

    mode: Mode
    unit: Unit
    total: float
    rows: tuple[Row, ...]
    text: str


def read_profile(content: bytes) -> "Profile | str":
    """Return what was measured, or a sentence on why there is nothing."""
    if len(content) > LARGEST:
        return "The profile is larger than a profile can be."
    try:
        values: Any = json.loads(content)
    except (ValueError, RecursionError):
        return "The profile cannot be read."
    match values:
        case {"failure": str(failure)}:
            return f"The profile could not be made: {legible(failure[:_LONGEST_NAME])}."
        case {"mode": str(mode), "total": total, "rows": [*rows], "text": str(text)} if mode in MODES:
            return Profile(
                mode=mode,
                unit=TOOLS[mode].unit,
                total=_number(total),
                rows=tuple(row for value in rows[:_MOST_ROWS] if (row := _row(value)) is not None),
                text=text[:_LONGEST_TEXT],
            )
        case _:
            return "The profile cannot be read."


def _row(value: Any) -> Row | None:
    match value:
        case [str(function), str(file), int(line), own, total, count]:
            return Row(
                function=legible(function[:_LONGEST_NAME]),
                file=legible(file[:_LONGEST_NAME]),
                line=line,
                own=_number(own),
                total=_number(total),
                count=int(_number(count)),
            )
        case _:
            return None


def _number(value: object) -> float:
    """Return a number that JSON can say again; 0 for anything else."""
    number = value if isinstance(value, int | float) else 0
    try:
        return float(number) if math.isfinite(number) else 0.0
    except OverflowError:
        return 0.0
