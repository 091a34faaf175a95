"""What the attacks need of a wall, whichever it is."""

import json
import socket
from dataclasses import dataclass
from typing import Any, Protocol

from pyexec_guest.protocol import MAX_FRAME, Decoder, encode

ANSWER_SECONDS = 30.0


class EndedError(Exception):
    """The sandbox ended before it answered."""


@dataclass(frozen=True)
class Ran:
    """What a piece of code printed, and its exception as `Type: message`."""

    out: str
    error: str | None

    @property
    def value(self) -> Any:
        """What was printed, as JSON."""
        assert self.error is None, self.error
        return json.loads(self.out)


@dataclass(frozen=True)
class End:
    """How a sandbox ended: `cause` is exit, signal, out_of_memory or killed."""

    cause: str
    value: int
    memory_limit: int
    peak_memory: int


class Sandbox(Protocol):
    """A sandbox under attack. It runs `attack_guest`."""

    @property
    def connection(self) -> socket.socket:
        """The connection to what runs in it."""
        ...

    def end(self, seconds: float) -> End | None:
        """Wait for its end; None when it still lives."""
        ...

    def interrupt(self) -> None:
        """Interrupt what it runs."""
        ...

    def kill(self) -> bool:
        """End it; tell whether nothing is left."""
        ...

    def processes(self) -> list[int]:
        """Its processes, by their pids on the machine."""
        ...

    def throttled(self) -> int:
        """How often it was given no more processor time."""
        ...

    def close(self) -> None:
        """End it and let go."""
        ...


class Wall(Protocol):
    """A wall under attack."""

    memory: int
    processes: int
    open_files: int
    workspace: int
    temporary: int
    files: int

    def sandbox(self, *, cpu: float | None = None, memory: int | None = None) -> Sandbox:
        """Return one that nobody has used, with other limits than the usual where they are given."""
        ...


def begin(sandbox: Sandbox, code: str) -> None:
    """Have a sandbox run code, without waiting for it."""
    sandbox.connection.sendall(encode({"code": code}))


def answer(sandbox: Sandbox, seconds: float = ANSWER_SECONDS) -> Ran:
    """Wait for the answer to what was begun."""
    sandbox.connection.settimeout(seconds)
    decoder = Decoder(MAX_FRAME)
    while True:
        try:
            data = sandbox.connection.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            raise EndedError
        for message in decoder.feed(data):
            return Ran(message["out"], message["error"])


def run(sandbox: Sandbox, code: str, seconds: float = ANSWER_SECONDS) -> Ran:
    """Have a sandbox run code; return what came of it."""
    begin(sandbox, code)
    return answer(sandbox, seconds)


def works(wall: Wall) -> bool:
    """Tell whether the next sandbox is what it should be."""
    sandbox = wall.sandbox()
    try:
        return run(sandbox, "import os; print(6 * 7, os.listdir('/work'))") == Ran("42 []\n", None)
    finally:
        sandbox.close()
