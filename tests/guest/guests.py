"""Guests without a keeper: a process, a channel, and pipes that are read here."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from pyexec.domain.turns import Display, Failure, LateText, Turn
from pyexec.sandbox.channel import GuestChannel, GuestGoneError, Hello
from pyexec.sandbox.guest import GUEST_MAIN
from tests.helpers.waiting import eventually


@dataclass(frozen=True)
class Cell:
    """A turn and what was printed meanwhile."""

    turn: Turn
    stdout: str
    stderr: str

    @property
    def value(self) -> str | None:
        return self.turn.value

    @property
    def failure(self) -> Failure:
        assert self.turn.failure is not None, self
        return self.turn.failure

    @property
    def kinds(self) -> list[str]:
        return [display.kind for display in self.turn.displays]

    @property
    def only(self) -> Display:
        (display,) = self.turn.displays
        return display


class Driven:
    """A guest that is driven from here, a cell at a time, wherever it runs."""

    def __init__(self, connection: socket.socket, pipes: tuple[int, int]) -> None:
        self._pipes = pipes
        for fd in self._pipes:
            os.set_blocking(fd, False)
        self.printed = (bytearray(), bytearray())
        self.late: list[tuple[str, Display | LateText]] = []
        self.channel = GuestChannel(connection, self.positions, lambda turn, said: self.late.append((turn, said)))
        self.hello: Hello = anyio.run(self.channel.hello)

    async def interrupt(self) -> None:
        """Interrupt what runs."""
        assert await self.channel.interrupt()

    def run(self, code: str, *, stdin: str | None = None, **options: Any) -> Cell:
        """Run a cell to its end."""

        async def work() -> Turn:
            return await self.channel.run(code, stdin=stdin, **options)

        return self.cell(work)

    def interrupted(self, code: str, ready: str = "ready\n") -> Cell:
        """Run a cell and interrupt it once it has printed `ready`."""

        async def work() -> Turn:
            begin = len(self.printed[0])
            async with anyio.create_task_group() as tasks:

                async def interrupt() -> None:
                    await eventually(lambda: ready.encode() in self.printed[0][begin:], what="the cell's word")
                    await self.interrupt()

                tasks.start_soon(interrupt)
                turn = await self.channel.run(code)
                tasks.cancel_scope.cancel()
                return turn
            raise AssertionError("unreachable")

        return self.cell(work)

    def info(self) -> Mapping[str, Any]:
        """Ask what the session holds."""
        return anyio.run(self.channel.info)

    def cell(self, work: Callable[[], Awaitable[Turn]]) -> Cell:
        """Do something with the channel while the output is read."""
        self.positions()
        begin = [len(stream) for stream in self.printed]

        async def pump(fd: int) -> None:
            while True:
                await anyio.wait_readable(fd)
                self.positions()
                if not self.is_open:
                    return

        async def both() -> Turn:
            async with anyio.create_task_group() as tasks:
                for fd in self._pipes:
                    tasks.start_soon(pump, fd)
                turn = await work()
                tasks.cancel_scope.cancel()
                return turn
            raise AssertionError("unreachable")

        try:
            turn = anyio.run(both)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        out, err = (
            bytes(stream[start:]).decode("utf-8", "replace") for stream, start in zip(self.printed, begin, strict=True)
        )
        return Cell(turn, out, err)

    def positions(self) -> tuple[int, int]:
        """Take over what the pipes hold."""
        self.is_open = True
        for fd, stream in zip(self._pipes, self.printed, strict=True):
            with suppress(BlockingIOError):
                while data := os.read(fd, 1 << 20):
                    stream += data
                self.is_open = False
        return len(self.printed[0]), len(self.printed[1])


class Guest(Driven):
    """A guest in a process of its own."""

    def __init__(self, python: Path, env: Mapping[str, str] | None = None, main: Path | str = GUEST_MAIN) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.files = self.folder / "files"
        self.work = self.folder / "work"
        self.files.mkdir()
        self.work.mkdir()
        ours, theirs = socket.socketpair()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYEXEC"))}
        self.process = subprocess.Popen(
            [python, main],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.work,
            env={
                **inherited,
                "HOME": str(self.folder),
                "PYEXEC_ARTIFACTS": str(self.files),
                "PYEXEC_CHANNEL": str(theirs.fileno()),
                **(env or {}),
            },
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        super().__init__(ours, (self.process.stdout.fileno(), self.process.stderr.fileno()))

    @property
    def pid(self) -> int:
        return self.process.pid

    def dies(self, code: str) -> GuestGoneError:
        """Run a cell that the guest does not survive."""
        try:
            cell = self.run(code)
        except GuestGoneError as gone:
            self.process.wait(10)
            self.positions()
            return gone
        raise AssertionError(f"it lives: {cell}")

    def close(self) -> None:
        """End it, and remove what it has written."""
        with suppress(OSError):
            anyio.run(self.channel.close)
        try:
            self.process.wait(10)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, 9)
            self.process.wait()
            for pipe in (self.process.stdout, self.process.stderr):
                assert pipe is not None
                pipe.close()
            shutil.rmtree(self.folder, ignore_errors=True)
