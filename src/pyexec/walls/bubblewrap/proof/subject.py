"""What is put to the proof: sandboxes of a wall, one after the other, with somebody to ask in each."""

import os
import select
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from pyexec.domain.limits import MEGABYTE, SandboxLimits
from pyexec.sandbox import probing
from pyexec.sandbox.forks import Plan
from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.sandboxes import Sandboxes

ANSWER_SECONDS = 8.0
LIMITS = SandboxLimits(
    memory=96 * MEGABYTE,
    cpu=0.05,
    processes=16,
    open_files=64,
    workspace=8 * MEGABYTE,
    temporary=4 * MEGABYTE,
    files=400,
)
"""Smaller than the usual ones, so that using them up is quick and takes nothing from the machine."""

COMFORTABLE = 2.0
"""Processors' worth of time where that is not what is tried."""


class Verdict(StrEnum):
    """What an attempt has shown."""

    HELD = "held"
    NOT_HELD = "not_held"
    WAIVED = "waived"
    NOT_TRIED = "not_tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A verdict, and what happened, as the end of a sentence."""

    verdict: Verdict
    happened: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One thing that a wall must not let happen.

    Attributes:
        id: Stays the same between versions.
        name: What it is about.
        tries: What is attempted, as the beginning of a sentence.
        make: Makes the attempt. Blocks, for a bounded time.
    """

    id: str
    name: str
    tries: str
    make: "Callable[[Subject], Outcome]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """What a sandbox must not find: a variable of whoever started the wall's programs."""

    name: str
    value: str


class Asked:
    """A sandbox of the wall under proof, and its guest."""

    def __init__(self, box: Box) -> None:
        self.box = box

    def ask(self, attempt: str, /, **given: Any) -> Any:
        """Have it make an attempt; return what it saw.

        Raises:
            ProbeError: It could not.
        """
        return probing.ask(self.box.sandbox.socket, attempt, ANSWER_SECONDS, **given)

    def begin(self, attempt: str, /, **given: Any) -> None:
        """Have it make an attempt that has no answer."""
        probing.begin(self.box.sandbox.socket, attempt, **given)

    def output_ended(self, seconds: float) -> bool:
        """Wait until no process holds its standard output; tell whether it is so."""
        output = self.box.sandbox.output[0]
        deadline = time.monotonic() + seconds
        while select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if not os.read(output, 65536):
                return True
        return False

    def user(self) -> int:
        """Return whom its first process is on this machine.

        Raises:
            OSError: It has ended.
        """
        with open(f"/proc/{self.box.sandbox.pid()}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Uid:"))


class Subject:
    """A wall under proof.

    Args:
        sandboxes: It; its guest is `probing.PROBER`.
        secret: A variable in the environment of whoever started its programs.
        home: The state folder of pyexec.
        plan: What its outer wall is made of.
        waived: Whether its operator has waived the limits that control groups hold.
        limits: What its sandboxes are held to.
    """

    def __init__(
        self,
        sandboxes: Sandboxes,
        *,
        secret: Secret,
        home: Path,
        plan: Plan,
        waived: bool = False,
        limits: SandboxLimits = LIMITS,
    ) -> None:
        self.sandboxes = sandboxes
        self.limits = limits
        self.secret = secret
        self.home = home
        self.plan = plan
        self.waived = waived

    @property
    def without_groups(self) -> "Outcome | None":
        """What becomes of limits that control groups hold, where there are none."""
        if not self.sandboxes.waived:
            return None
        if self.waived:
            return waived("nothing holds it to that; the operator has waived the limit")
        return not_held("nothing holds it to that: there are no control groups")

    @contextmanager
    def sandbox(self, *, cpu: float = COMFORTABLE) -> Generator[Asked]:
        """Have a sandbox that nobody has used; nothing is left of it.

        Raises:
            PyexecError: There is none.
        """
        box = self.sandboxes.sandbox(replace(self.limits, cpu=cpu))
        try:
            yield Asked(box)
        finally:
            box.close()


def held(happened: str) -> Outcome:
    """Say that the wall did what it must."""
    return Outcome(verdict=Verdict.HELD, happened=happened)


def not_held(happened: str) -> Outcome:
    """Say that it did not."""
    return Outcome(verdict=Verdict.NOT_HELD, happened=happened)


def waived(happened: str) -> Outcome:
    """Say that it need not, because it has been decided so."""
    return Outcome(verdict=Verdict.WAIVED, happened=happened)


def judge(*, good: bool, happened: str) -> Outcome:
    """Return the outcome of an attempt that shows by itself how it went."""
    return held(happened) if good else not_held(happened)


def megabytes(size: float) -> str:
    """Return a size as text."""
    return f"{size / MEGABYTE:.0f} MB"
