"""Processor time by owner: where there is not enough for all, the sandboxes at work of one owner share one share."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

from pyexec.walls.bubblewrap.boxes import Box

LEFT_BEHIND = 0.02
"""What threads and programs get that a cell has left running in its session, beside cells."""


class Weights:
    """Gives sandboxes their weight while something runs in them. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work: dict[str, list[Box]] = {}

    @contextmanager
    def at_work(self, owner: str, box: Box) -> Generator[None]:
        """Count a sandbox of an owner as one that is at work, meanwhile."""
        with self._lock:
            boxes = self._at_work.setdefault(owner, [])
            boxes.append(box)
            _spread(boxes)
        try:
            yield
        finally:
            with self._lock:
                boxes.remove(box)
                box.weigh(LEFT_BEHIND)
                _spread(boxes)
                if not boxes:
                    del self._at_work[owner]


def _spread(boxes: list[Box]) -> None:
    for box in boxes:
        box.weigh(1 / len(boxes))
