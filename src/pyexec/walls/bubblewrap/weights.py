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
        self._divided: dict[str, int] = {}  # Among how many the share of an owner is, of those that have settled.

    def begin(self, owner: str, box: Box) -> None:
        """Count a sandbox of an owner as one that is at work, until `end`, and that has just begun, until `settle`.

        The others of its owner give up a part of theirs then, and nothing for what is over before that.
        """
        with self._lock:
            boxes = self._at_work.setdefault(owner, [])
            boxes.append(box)
            self._beginning.add(box)
            self._weigh(box, len(boxes))

    def end(self, owner: str, box: Box) -> None:
        """Note that nothing but what was left behind runs in it any more."""
        with self._lock:
            boxes = self._at_work[owner]
            boxes.remove(box)
            self._beginning.discard(box)
            box.weigh(LEFT_BEHIND)
            if not boxes:
                del self._at_work[owner]
            if self._divided.get(owner, 0) != len(boxes):
                self._divide(owner)

    def settle(self, owner: str, box: Box) -> None:
        """Note that `BEGINNING_SECONDS` have passed since it began."""
        with self._lock:
            self._beginning.discard(box)
            self._divide(owner)

    def _divide(self, owner: str) -> None:
        """Give each of an owner's their part of the share of all."""
        boxes = self._at_work.get(owner, [])
        for box in boxes:
            self._weigh(box, len(boxes))
        if boxes:
            self._divided[owner] = len(boxes)
        else:
            self._divided.pop(owner, None)

    def _weigh(self, box: Box, parts: int) -> None:
        box.weigh((BEGINNING if box in self._beginning else 1.0) / parts)
