"""Putting a wall to the proof: every attempt, one after the other."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyexec.domain.errors import PyexecError
from pyexec.sandbox.forks import ForkServerGoneError
from pyexec.sandbox.probing import ProbeError
from pyexec.walls.bubblewrap.proof.endings import ENDING_ATTEMPTS
from pyexec.walls.bubblewrap.proof.identity import IDENTITY_ATTEMPTS
from pyexec.walls.bubblewrap.proof.limits import LIMIT_ATTEMPTS
from pyexec.walls.bubblewrap.proof.outside import OUTSIDE_ATTEMPTS
from pyexec.walls.bubblewrap.proof.subject import Attempt, Outcome, Subject, Verdict

AT_ONCE = 3
ATTEMPTS: Mapping[str, tuple[Attempt, ...]] = {
    "what it may use": LIMIT_ATTEMPTS,
    "its end": ENDING_ATTEMPTS,
    "what is outside": OUTSIDE_ATTEMPTS,
    "who it is": IDENTITY_ATTEMPTS,
}
"""Every attempt, by what it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What became of an attempt; `about` is its key in `ATTEMPTS`."""

    about: str
    attempt: Attempt
    verdict: Verdict
    happened: str


def prove(subject: Subject, seconds: float) -> Iterator[Finding]:
    """Make every attempt in a sandbox of its own, and say of each what happened, in their order. Blocks.

    Args:
        subject: The wall.
        seconds: What is not begun by then is not tried.
    """
    deadline = time.monotonic() + seconds

    def tried(attempt: Attempt) -> Outcome:
        return make(attempt, subject) if time.monotonic() < deadline else _late(seconds)

    all_of_them = [(about, attempt) for about, attempts in ATTEMPTS.items() for attempt in attempts]
    # They wait more than they work: for their processor time, for a process to end.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = pool.map(tried, (attempt for _, attempt in all_of_them))
        for (about, attempt), outcome in zip(all_of_them, outcomes, strict=True):
            yield Finding(about=about, attempt=attempt, verdict=outcome.verdict, happened=outcome.happened)


def make(attempt: Attempt, subject: Subject) -> Outcome:
    """Make one attempt; what goes wrong with it is an outcome too. Blocks."""
    try:
        return attempt.make(subject)
    except PyexecError as error:
        return Outcome(verdict=Verdict.NOT_TRIED, happened=error.message)
    except (ProbeError, ForkServerGoneError, OSError) as error:
        return Outcome(verdict=Verdict.NOT_TRIED, happened=str(error) or type(error).__name__)


def _late(seconds: float) -> Outcome:
    return Outcome(verdict=Verdict.NOT_TRIED, happened=f"the others took more than {seconds:g} s")
