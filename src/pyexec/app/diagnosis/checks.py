"""What a check of this machine comes to."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at: how it is, in one sentence, and what to do where it is not well.

    Attributes:
        id: Stays the same between versions; None: the name, in small letters with hyphens.
        group: What it is a part of; None: nothing but the whole.
        verdict: Of an attempt to get through a wall: held, not_held, waived or not_tried.
    """

    name: str
    status: Status
    message: str
    hint: str | None = None
    details: tuple[str, ...] = ()
    id: str | None = None
    group: str | None = None
    verdict: str | None = None

    @property
    def key(self) -> str:
        """What it is known by to a program."""
        return self.id or self.name.lower().replace(" ", "-")
