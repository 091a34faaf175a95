"""The guest itself in a sandbox, driven from here."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyexec.domain.turns import Turn
from pyexec.sandbox.channel import GuestGoneError
from pyexec.sandbox.turns import read_turn
from pyexec.walls.bubblewrap.boxes import Box, Ending
from pyexec_guest import log
from pyexec_guest.keeper.connection import GuestConnection
from pyexec_guest.keeper.guest import GuestLink, turn_request
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.keeper.output import OutputPump
from tests.guest.guests import Cell, Driven

END_SECONDS = 20.0
HEAD = TAIL = 1024 * 1024


class BoxedGuest(Driven):
    """A guest in a sandbox. Files that it sends lie in `files`."""

    def __init__(self, box: Box, files: Path) -> None:
        self.box = box
        self.files = files
        self.interrupts_by_signal = False
        self.interrupted_at = 0.0
        super().__init__(box.sandbox.socket, box.sandbox.output)

    def run(self, code: str, *, stdin: str | None = None, **options: Any) -> Cell:
        return super().run(code, stdin=stdin, **{"files": self.files, **options})

    async def interrupt(self) -> None:
        self.interrupted_at = time.monotonic()
        if self.interrupts_by_signal:
            self.box.interrupt()
        else:
            await super().interrupt()

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


@dataclass(frozen=True)
class Guarded:
    """What a keeper of our own made of a turn in a sandbox."""

    turn: Turn
    stdout: bytes
    stderr: bytes
    files: dict[str, bytes]
    totals: tuple[int, int]

    @property
    def broken(self) -> str:
        assert self.turn.broken is not None, self
        return self.turn.broken


def guard(box: Box, folder: Path, code: str, *, seconds: float = END_SECONDS, **request: Any) -> Guarded:
    """Run a turn as a keeper does: with its loop, its pumps and its link to the guest; then end the sandbox."""
    artifacts = folder / "artifacts"
    artifacts.mkdir()
    loop = Loop()
    writers = [log.StreamWriter(str(folder), name, HEAD, TAIL) for name in log.STREAMS]
    pumps = [OutputPump(writer, name, loop) for writer, name in zip(writers, log.STREAMS, strict=True)]
    for pump, fd in zip(pumps, box.sandbox.output, strict=True):
        os.set_blocking(fd, False)
        pump.attach(os.dup(fd))
    link = GuestLink(
        loop,
        str(folder),
        turn_request({"code": code, **request}),
        lambda: [pump.catch_up() for pump in pumps],
        lambda _kind: None,
        connection=GuestConnection(box.sandbox.socket),
        files=str(artifacts),
    )
    try:
        assert loop.run_until(lambda: not link.is_open, time.monotonic() + seconds), "it goes on"
    finally:
        box.kill()
        link.close()
        for pump in pumps:
            pump.close()
    turn = read_turn(folder)
    assert turn is not None
    out, err = (log.read(str(folder), name, 0, HEAD).data for name in log.STREAMS)
    return Guarded(
        turn,
        out,
        err,
        {path.name: path.read_bytes() for path in artifacts.iterdir()},
        (pumps[0].total, pumps[1].total),
    )
