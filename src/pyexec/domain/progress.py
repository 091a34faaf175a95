"""How far something is."""

import math
import re
from dataclasses import dataclass

MESSAGE_LENGTH = 200

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """So much of so much is done; `total` is None where it is not known. Never negative, never infinite."""

    current: float
    total: float | None = None
    message: str | None = None


def make_progress(current: float, total: float | None = None, message: str = "") -> Progress | None:
    """Return what was told as a value that every client can hold; None where the numbers say nothing.

    A total that is no number above 0 counts as unknown. A message loses its control characters and what is too long.
    """
    try:
        done, whole = float(current), None if total is None else float(total)
    except (OverflowError, TypeError, ValueError):
        return None
    if not math.isfinite(done) or done < 0:
        return None
    if whole is not None and not (math.isfinite(whole) and whole > 0):
        whole = None
    return Progress(current=done, total=whole, message=clean_message(message) or None)


def clean_message(text: str) -> str:
    """Return text on one line, without what would move a cursor or change a colour, and short."""
    printable = "".join(letter if letter.isprintable() else " " for letter in _ESCAPE.sub("", text[:4096]))
    return " ".join(printable.split())[:MESSAGE_LENGTH]
