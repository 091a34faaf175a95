"""How a turn in a sandbox has begun and ended, in the words of records."""

import signal
from typing import Any

from pyexec.domain.limits import MEGABYTE
from pyexec.sandbox.forks import Spent
from pyexec.sandbox.guarding import Ending, Usage, boot_id, exit_of
from pyexec.walls.bubblewrap.boxes import Box, Cause
from pyexec.walls.bubblewrap.boxes import Ending as BoxEnding


def started_in(box: Box) -> dict[str, Any]:
    """Return what is noted when something begins in a sandbox."""
    pid, ticks = box.process
    return {"boot": boot_id(), "pid": pid, "start_ticks": ticks, "group": None, "pipes": []}


def used_since(box: Box, ending: Ending, before: Spent | None) -> Usage:
    """Return what has been used in a sandbox since; say so where something in it was ended for want of memory."""
    usage = box.spent()
    if usage is None:
        return Usage()
    used = usage.cpu_seconds, usage.user_seconds, usage.system_seconds
    had = (before.cpu_seconds, before.user_seconds, before.system_seconds) if before else (0.0, 0.0, 0.0)
    together, user, system = (max(0.0, now - then) for now, then in zip(used, had, strict=True))
    killed = usage.out_of_memory - (before.out_of_memory if before else 0)
    if killed > 0 and ending.cause != "out_of_memory":
        add_reason(
            ending,
            f"A process in it was killed because all together reached the limit of {box.limits.memory // MEGABYTE} MB.",
        )
    return Usage(
        # Where only the sum of both is known it counts as the program's own.
        user_seconds=user or together - system,
        system_seconds=system,
        peak_rss_bytes=usage.peak_memory,
    )


def add_reason(ending: Ending, told: str) -> None:
    """Add a sentence to how something has ended."""
    ending.reason = f"{ending.reason} {told}" if ending.reason else told


def add_end(ending: Ending, how: BoxEnding | None, reason: str | None) -> None:
    """Add how a sandbox has ended (None: nothing could end it), and the reason if somebody had one to end it."""
    if how is None or how.cause is Cause.KILLED:
        ending.exit_code, ending.signal = exit_of(signal.SIGKILL)
        if ending.cause is None:
            ending.cause = "signalled"
            ending.reason = (
                f"It was ended because {reason}." if reason else "All of its sandbox was ended from outside."
            )
        return
    if how.cause is Cause.EXIT:
        ending.exit_code = how.value
    else:
        ending.exit_code, ending.signal = exit_of(how.value or signal.SIGKILL)
    if ending.cause is None:
        if how.cause is Cause.OUT_OF_MEMORY:
            ending.cause = "out_of_memory"
            ending.reason = (
                f"It needed more memory than its limit of {how.memory_limit // MEGABYTE} MB "
                f"(at most it had {how.peak_memory / MEGABYTE:.0f} MB)."
            )
        else:
            ending.cause = "exited" if how.cause is Cause.EXIT else "signalled"
