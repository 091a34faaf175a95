"""The guest itself in a sandbox, driven from here."""

from pathlib import Path
from typing import Any

from pyexec.sandbox.channel import GuestGoneError
from pyexec.walls.bubblewrap.boxes import Box, Ending
from tests.guest.guests import Cell, Driven

END_SECONDS = 20.0


class BoxedGuest(Driven):
    """A guest in a sandbox. Files that it sends lie in `files`."""

    def __init__(self, box: Box, files: Path) -> None:
        self.box = box
        self.files = files
        super().__init__(box.sandbox.socket, box.sandbox.output)

    def run(self, code: str, *, stdin: str | None = None, **options: Any) -> Cell:
        return super().run(code, stdin=stdin, **{"files": self.files, **options})

    def dies(self, code: str, **options: Any) -> tuple[GuestGoneError, Ending]:
        """Run a cell that the sandbox does not survive."""
        try:
            cell = self.run(code, **options)
        except GuestGoneError as gone:
            ending = self.box.wait_ended(END_SECONDS)
            self.positions()
            assert ending is not None, "it lives"
            return gone, ending
        raise AssertionError(f"it lives: {cell}")
