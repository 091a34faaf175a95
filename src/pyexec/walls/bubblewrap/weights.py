"""Processor time by owner: where there is not enough for all, the sandboxes at work of one owner share one share.

What has just begun counts more for a moment: most cells are over by then, and somebody waits for them. What has settled
gives way to all others at once, in place of at the end of its slice of time, where that can be had and is no injustice:
those that give way all have the same, so their owners must have as many each; and what cells have left behind does not
give way, so nothing of that may be at work.
"""

import threading
import weakref

from pyexec.walls.bubblewrap.boxes import Box

BEGINNING_SECONDS = 0.2
BEGINNING = 30.0
"""How many times as much what has just begun gets as it does later."""

LEFT_BEHIND = 0.02
"""What threads and programs get that a cell has left running in its session, beside cells."""

LOOK_SECONDS = 1.0
LONGEST_LOOK_SECONDS = 3.0
BUSY = 0.05
"""What was left behind is at work where all of it together takes more than this of one processor."""


class Weights:
    """Gives sandboxes their weight while something runs in them. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work: dict[str, list[Box]] = {}
        self._beginning: set[Box] = set()
        self._divided: dict[str, int] = {}  # Among how many the share of an owner is, of those that have settled.
        self._some_have_settled = False
        self._resting: weakref.WeakKeyDictionary[Box, float | None] = weakref.WeakKeyDictionary()
        self._left_used = 0.0  # What was left behind has had since the last look, in sandboxes that rest no more.
        self._looked_at = 0.0
        self._is_left_busy = False

    def begin(self, owner: str, box: Box) -> None:
        """Count a sandbox of an owner as one that is at work, until `end`, and that has just begun, until `settle`.

        The others of its owner give up a part of theirs then, and nothing for what is over before that.
        """
        with self._lock:
            boxes = self._at_work.setdefault(owner, [])
            boxes.append(box)
            self._beginning.add(box)
            before = self._resting.pop(box, None)
            if self._some_have_settled:
                self._left_used += _used(before, box.cpu_seconds())
            self._weigh(box, len(boxes))

    def end(self, owner: str, box: Box) -> None:
        """Note that nothing but what was left behind runs in it any more."""
        with self._lock:
            boxes = self._at_work[owner]
            boxes.remove(box)
            had_settled = box not in self._beginning
            self._beginning.discard(box)
            self._resting[box] = box.cpu_seconds() if self._some_have_settled else None
            box.weigh(LEFT_BEHIND)
            if not boxes:
                del self._at_work[owner]
            if had_settled or self._divided.get(owner, 0) != len(boxes):
                self._divide(owner)

    def settle(self, owner: str, box: Box) -> None:
        """Note that `BEGINNING_SECONDS` have passed since it began."""
        with self._lock:
            self._beginning.discard(box)
            self._divide(owner)

    def hurry(self, owner: str, box: Box) -> None:
        """Have one that has settled count as one that has just begun again: it is to come to its end."""
        with self._lock:
            self._beginning.add(box)
            self._divide(owner)

    def look(self, now: float) -> float:
        """See what was left behind, where that is due, for who watches over one that has settled.

        `now` and the time of the next look, which is returned, are `time.monotonic`.
        """
        with self._lock:
            seconds = now - self._looked_at
            if seconds < LOOK_SECONDS:
                return self._looked_at + LOOK_SECONDS
            self._looked_at = now
            resting = list(self._resting.items())
        # Nobody has to wait for this who begins or ends.
        found = [(box, before, box.cpu_seconds()) for box, before in resting]
        with self._lock:
            for box, before, after in found:
                if box in self._resting:
                    self._resting[box] = after
                    self._left_used += _used(before, after)
            if seconds < LONGEST_LOOK_SECONDS:  # Else nothing is known of the last second.
                self._is_left_busy = self._left_used > BUSY * seconds
            self._left_used = 0.0
            self._see_who_gives_way()
            return now + LOOK_SECONDS

    def _divide(self, owner: str) -> None:
        """Give each of an owner's their part of the share of all."""
        boxes = self._at_work.get(owner, [])
        for box in self._beginning.intersection(boxes):
            self._weigh(box, len(boxes))
        if boxes:
            self._divided[owner] = len(boxes)
        else:
            self._divided.pop(owner, None)
        self._see_who_gives_way()

    def _see_who_gives_way(self) -> None:
        settled = {owner: set(boxes) - self._beginning for owner, boxes in self._at_work.items()}
        counts = {len(boxes) for boxes in settled.values() if boxes}
        self._some_have_settled = bool(counts)
        gives_way = len(counts) == 1 and not self._is_left_busy
        for owner, boxes in settled.items():
            for box in boxes:
                self._weigh(box, len(self._at_work[owner]), gives_way=gives_way)

    def _weigh(self, box: Box, parts: int, *, gives_way: bool = False) -> None:
        box.weigh((BEGINNING if box in self._beginning else 1.0) / parts, gives_way=gives_way)


def _used(before: float | None, after: float | None) -> float:
    return 0.0 if before is None or after is None else max(0.0, after - before)
