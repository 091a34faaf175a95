"""What a check of this machine comes to."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at: how it is, in one sentence, and what to do where it is not well."""

    name: str
    status: Status
    message: str
    hint: str | None = None
    details: tuple[str, ...] = ()
