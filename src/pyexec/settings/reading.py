"""What a variable of the environment is, and how the usual kinds of values are read from its text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One environment variable: what it sets, what it means, how its text is read.

    `limit` is the name of the value it sets, where that belongs to one of the groups of limits. What is `secret` is
    shown to nobody, and nothing that we start inherits it.
    """

    name: str
    meaning: str
    default: str
    allowed: str
    read: Callable[[str], Any]
    limit: str | None = None
    secret: bool = False


def number(low: float, high: float, factor: float = 1) -> Callable[[str], float]:
    """Return what reads a number between these two, times a factor."""

    def read(text: str) -> float:
        return _between(float(text), low, high) * factor

    return read


def whole(low: int, high: int, factor: int = 1) -> Callable[[str], int]:
    """Return what reads a whole number between these two, times a factor."""

    def read(text: str) -> int:
        return int(_between(int(text), low, high)) * factor

    return read


def _between(value: float, low: float, high: float) -> float:
    if not low <= value <= high:
        raise ValueError
    return value
