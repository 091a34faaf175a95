"""The memory of a program and of everything it has started, looked at while they run.

One process has the memory that is resident. Several share some, which must not be counted twice: each is charged its
proportional share (PSS), as the kernel works it out. That takes the kernel a while for large processes, so it is asked
no more often than costs one hundredth of the time; in between, what is shared is taken to be what it last was, unless
that made a new peak: when a process forks, it shares all at once what was its own.
"""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

COST = 100
NEW_PEAK = 1.05
_PAGE = os.sysconf("SC_PAGE_SIZE")
CAN_LOOK = os.path.exists("/proc/self/statm")


class MemoryWatch:
    """Looks at all descendants of this process, again and again.

    Attributes:
        peak: The most that they had together at one time, in bytes.
        processes: The most that there were at one time.
        series: Seconds since the start and bytes, the most of each `interval`; of longer times when `points` of those
            are not enough.
    """

    def __init__(self, started: float, interval: float, points: int) -> None:
        self.peak = 0
        self.processes = 0
        self.series: list[tuple[float, int]] = []
        self._started = started
        self._interval = interval
        self._step = interval
        self._points = points
        self._shared: dict[int, int] = {}
        self._cost = 0.0
        self._share_at = 0.0

    def next_look(self, now: float) -> float:
        """Return when to look again: soon in the beginning and where there are several, else each interval."""
        age = now - self._started
        pause = min(max(age / 5, 0.001), self._interval)
        if self.processes > 1:
            pause = min(pause, 0.01)
        return now + max(pause, min(self._cost * COST, self._interval))

    def look(self) -> None:
        """Look once."""
        began = time.monotonic()
        resident = {pid: size for pid in descendants(os.getpid()) if (size := _resident(pid))}
        self.processes = max(self.processes, len(resident))
        total = self._proportional(resident, began) if len(resident) > 1 else sum(resident.values())
        if total:
            self.peak = max(self.peak, total)
            self._note(began - self._started, total)
        self._cost = time.monotonic() - began

    def _proportional(self, resident: dict[int, int], now: float) -> int:
        due = now >= self._share_at
        self._ask(resident, everyone=due, now=now)
        total = self._charged(resident)
        if due or total <= self.peak * NEW_PEAK:
            return total
        self._ask(resident, everyone=True, now=now)
        return self._charged(resident)

    def _ask(self, resident: dict[int, int], *, everyone: bool, now: float) -> None:
        for pid, size in resident.items():
            if everyone or pid not in self._shared:
                charged = _proportional_share(pid)
                self._shared[pid] = 0 if charged is None else max(0, size - charged)
        if everyone:
            self._share_at = now + (time.monotonic() - now) * COST

    def _charged(self, resident: dict[int, int]) -> int:
        return sum(max(0, size - self._shared[pid]) for pid, size in resident.items())

    def _note(self, at: float, size: int) -> None:
        """Keep the most of each step; where that gets too long, steps become twice as long."""
        step = int(at / self._step)
        if self.series and int(self.series[-1][0] / self._step) == step:
            if size > self.series[-1][1]:
                self.series[-1] = (at, size)
            return
        self.series.append((at, size))
        if len(self.series) > self._points:
            self._step *= 2
            pairs = zip(self.series[::2], self.series[1::2], strict=False)
            self.series = [max(pair, key=lambda point: point[1]) for pair in pairs]


def descendants(root: int) -> list[int]:
    """Return all that a process has started and that is there, parents before children."""
    found: list[int] = []
    frontier = [root]
    while frontier:
        frontier = [child for pid in frontier for child in _children(pid)]
        found += frontier
    return found


def _children(pid: int) -> "Iterator[int]":
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                yield from map(int, file.read().split())
    except OSError:
        return


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional_share(pid: int) -> int | None:
    """Return what a process is charged, 0 when it is gone; None where that is not told, as of another user's."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except OSError:
        return None
    return 0
