"""Our end of a guest's channel: several turns, one after the other, with a guest that is not trusted."""

import secrets
import socket
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from pyexec.domain.turns import Display, LateText, Turn
from pyexec.sandbox.turns import BreachError, TurnReader
from pyexec_guest import protocol
from pyexec_guest.keeper.files import FileBreachError, IncomingFiles

HELLO_SECONDS = 30.0
REMEMBERED_TURNS = 16
ID_BYTES = 16
_GULP_BYTES = 256 * 1024

Positions = Callable[[], tuple[int, int]]
"""Takes over all output there is by now; tells how many bytes each stream has had."""


class GuestGoneError(Exception):
    """The guest has ended, or has been let go of because of what it said; `turn` is what it was doing by then."""

    def __init__(self, why: str, turn: Turn | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.turn = turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a guest says of itself."""

    python: str
    ipython: str


class GuestChannel:
    """Asks a guest for one turn at a time. Belongs to one task; `interrupt` may be called from others.

    Whoever has it reads the guest's output, and hands in how: that is done before each display is acknowledged, so
    displays and output are in the order in which they were made.

    Args:
        connection: A socket to the guest.
        positions: See `Positions`.
        on_late: Hears what threads of an earlier turn say, with the id of that turn.
    """

    def __init__(
        self,
        connection: socket.socket,
        positions: Positions,
        on_late: Callable[[str, Display | LateText], None] | None = None,
    ) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._positions = positions
        self._on_late = on_late
        self._decoder = protocol.Decoder(protocol.GUEST_FRAME)
        self._messages: deque[dict[str, Any]] = deque()
        self._breach: str | None = None
        self._past: OrderedDict[str, TurnReader] = OrderedDict()
        self._turn: TurnReader | None = None
        self._sending = anyio.Lock()

    async def hello(self) -> Hello:
        """Wait for the guest to come up.

        Raises:
            GuestGoneError: It does not, or is of another version.
        """
        with anyio.move_on_after(HELLO_SECONDS):
            message = await self._next()
            if message.get("t") != "hello" or message.get("v") != protocol.VERSION:
                raise self._gone("It does not speak as a guest of this version does.")
            return Hello(python=str(message.get("python"))[:40], ipython=str(message.get("ipython"))[:40])
        raise self._gone(f"It did not come up within {HELLO_SECONDS:g} s.")

    async def run(
        self,
        code: str,
        *,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        last: bool = False,
        files: Path | None = None,
        on_display: Callable[[Display], None] | None = None,
    ) -> Turn:
        """Have code run; return what came of it.

        Args:
            code: Python, with magics and top-level await.
            stdin: The text that it may read.
            env: Environment variables, for this turn only.
            last: Whether the guest shall end after it, having sent the files that the code has made.
            files: Where files are put that the guest sends; None where it has a folder in common with its reader.
            on_display: Hears of each display when it comes.

        Raises:
            GuestGoneError: The guest has ended meanwhile, or said what no guest says.
        """
        request = {"op": "run", "code": code, "stdin": stdin, "env": dict(env or {}), "last": last}
        incoming = None if files is None else IncomingFiles(str(files))
        try:
            async with self._turn_of(request) as reader:
                while not reader.ended:
                    shown = await self._step(reader, incoming)
                    if shown is not None and on_display is not None:
                        on_display(shown)
                self._positions()
                return reader.result()
        finally:
            if incoming is not None:
                incoming.close()

    async def info(self) -> Mapping[str, Any]:
        """Return what the guest says of its variables, packages, memory and age.

        Raises:
            GuestGoneError: The guest has ended meanwhile, or said what no guest says.
        """
        async with self._turn_of({"op": "info"}) as reader:
            while not reader.ended:
                await self._step(reader)
            return reader.info or {}

    async def interrupt(self) -> bool:
        """Interrupt the turn that runs; tell whether one did."""
        turn = self._turn
        if turn is None:
            return False
        await self._send({"op": "interrupt", "turn": turn.id})
        return True

    async def take_late(self) -> None:
        """Wait for what threads of earlier turns say while no turn runs.

        Raises:
            GuestGoneError: The guest has ended meanwhile, or said what no guest says.
        """
        message = await self._next()
        try:
            late = self._was_late(message)
        except BreachError as error:
            raise self._gone(str(error)) from error
        if not late:
            raise self._gone("a frame outside of a turn")

    async def close(self) -> None:
        """Ask the guest to end, and let go."""
        try:
            await self._send({"op": "close"})
        except GuestGoneError:
            return
        finally:
            self._socket.close()

    # -- one turn --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _turn_of(self, request: dict[str, Any]) -> AsyncGenerator[TurnReader]:
        reader = TurnReader(secrets.token_hex(ID_BYTES))
        self._turn = reader
        try:
            await self._send({**request, "turn": reader.id})
            yield reader
        finally:
            self._turn = None
            self._past[reader.id] = reader
            while len(self._past) > REMEMBERED_TURNS:
                self._past.popitem(last=False)

    async def _step(self, reader: TurnReader, files: IncomingFiles | None = None) -> Display | None:
        message = await self._next()
        try:
            if self._was_late(message):
                return None
            if message.get("t") == "event" and message.get("k") == "file":
                reader.take(_written_down(message, reader, files))
                return None
            if message.get("t") == "event":
                shown = reader.take({**message, "at": list(self._positions())})
                await self._send({"op": "ack", "n": message.get("n")})
                return shown if isinstance(shown, Display) else None
            reader.take(message)
        except (BreachError, FileBreachError) as error:
            raise self._gone(str(error), reader) from error
        return None

    def _was_late(self, message: dict[str, Any]) -> bool:
        if message.get("t") != "late":
            return False
        past = self._past.get(str(message.get("turn")))
        if past is not None:
            said = past.take(message)
            if said is not None and self._on_late is not None:
                self._on_late(past.id, said)
        elif self._turn is not None and message.get("turn") == self._turn.id:
            self._turn.take(message)
        return True

    # -- frames ----------------------------------------------------------------------------------------------------

    async def _next(self) -> dict[str, Any]:
        while not self._messages:
            if self._breach is not None:
                raise self._gone(self._breach, self._turn)
            await anyio.wait_readable(self._socket)
            try:
                data = self._socket.recv(_GULP_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                raise self._gone("It has ended.", self._turn)
            try:
                self._messages.extend(self._decoder.messages(data))
            except protocol.ProtocolError as error:
                self._breach = str(error)
        return self._messages.popleft()

    async def _send(self, message: dict[str, Any]) -> None:
        data = memoryview(protocol.encode(message))
        async with self._sending:
            while data:
                try:
                    sent = self._socket.send(data)
                except BlockingIOError:
                    await anyio.wait_writable(self._socket)
                    continue
                except OSError as error:
                    raise self._gone("It has ended.", self._turn) from error
                data = data[sent:]

    def _gone(self, why: str, reader: TurnReader | None = None) -> GuestGoneError:
        """Let go, which ends the guest; return the error to raise."""
        self._socket.close()
        if reader is not None:
            reader.break_off(why)
        return GuestGoneError(why, None if reader is None else reader.result())


def _written_down(message: dict[str, Any], reader: TurnReader, files: IncomingFiles | None) -> dict[str, Any]:
    """Write a piece of a file down; return the note of it that takes its place."""
    if files is None or message.get("turn") != reader.id:
        raise FileBreachError("a file where none is due")
    noted = files.take(message)
    return {"t": "event", "turn": reader.id, "n": message.get("n"), "k": "file", **noted}
