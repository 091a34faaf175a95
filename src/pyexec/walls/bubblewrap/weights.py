"""Processor time by owner: where there is not enough for all, the sandboxes at work of one owner share one share.

What has just begun counts more for a moment: most cells are over by then, and somebody waits for them.
"""

import threading

from pyexec.walls.bubblewrap.boxes import Box

BEGINNING_SECONDS = 0.2
BEGINNING = 30.0
"""How many times as much what has just begun gets as it does later."""

LEFT_BEHIND = 0.02
"""What threads and programs get that a cell has left running in its session, beside cells."""


class Weights:
    """Gives sandboxes their weight while something runs in them. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work: dict[str, list[Box]] = {}
        self._beginning: set[Box] = set()

    def begin(self, owner: str, box: Box) -> None:
        """Count a sandbox of an owner as one that is at work, until `end`, and that has just begun, until `settle`."""
        with self._lock:
            boxes = self._at_work.setdefault(owner, [])
            boxes.append(box)
            self._beginning.add(box)
            self._spread(boxes)

    def end(self, owner: str, box: Box) -> None:
        """Note that nothing but what was left behind runs in it any more."""
        with self._lock:
            boxes = self._at_work[owner]
            boxes.remove(box)
            self._beginning.discard(box)
            box.weigh(LEFT_BEHIND)
            self._spread(boxes)
            if not boxes:
                del self._at_work[owner]

    def settle(self, owner: str, box: Box) -> None:
        """Note that `BEGINNING_SECONDS` have passed since it began."""
        with self._lock:
            self._beginning.discard(box)
            self._spread(self._at_work.get(owner, []))

    def _spread(self, boxes: list[Box]) -> None:
        for box in boxes:
            box.weigh((BEGINNING if box in self._beginning else 1.0) / len(boxes))
