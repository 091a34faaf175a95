"""A place to run whose guest is the test."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from pyexec.domain.limits import SandboxLimits
from pyexec.sandbox.guarding import GuestConnection
from pyexec.storage.packed import Packer
from pyexec.walls.bubblewrap.stays import House
from pyexec.walls.bubblewrap.weights import Weights
from pyexec_guest import protocol


class Sandbox:
    """The descriptors of one."""

    def __init__(self) -> None:
        out, self.stdout = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        err, self.stderr = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.news, self._told = os.pipe2(os.O_CLOEXEC)
        self.output = (out, err)

    def close(self) -> None:
        for fd in (*self.output, self.stdout, self.stderr, self.news, self._told):
            with suppress(OSError):
                os.close(fd)


class Box:
    """A sandbox that notes its weight."""

    def __init__(self) -> None:
        self.sandbox = Sandbox()
        self.limits = SandboxLimits()
        self.shares: list[float] = []
        self.process = (os.getpid(), 0)

    def spent(self) -> None:
        return None

    def weigh(self, share: float, *, gives_way: bool = False) -> None:
        self.shares.append(share)


class GuestStay:
    """A place to run that notes how it is left; the test says what its guest says."""

    def __init__(self) -> None:
        ours, self.guest = socket.socketpair()
        self.guest.settimeout(10)
        self._decoder = protocol.Decoder(protocol.MAX_FRAME)
        self.box = Box()
        self.connection = GuestConnection(ours)
        self.connection.greeted = True
        self.request: Mapping[str, Any] = {"last": False}
        self.earlier: tuple[str, ...] = ()
        self.patience = 0.1
        self.kept: str | None = None
        self.said_late: list[dict[str, Any]] = []
        self.left: list[bool] = []
        self.lasts = True
        self.told: str | None = None
        self.turns: list[str] = []

    def late(self) -> list[dict[str, Any]]:
        return self.said_late

    def began(self, turn: str) -> None:
        self.turns.append(turn)

    def ended_by(self) -> None:
        return None

    def leave(self, *, alive: bool, reason: str | None) -> str | None:
        self.left.append(alive)
        return self.told

    def close(self) -> None:
        """See `Stay.close`."""

    def asked(self) -> dict[str, Any]:
        """Return what its guest has been asked for."""
        while True:
            for message in self._decoder.feed(self.guest.recv(65536)):
                return message

    def say(self, **message: Any) -> None:
        """Say something of the turn that was asked for."""
        self.guest.sendall(protocol.encode({"turn": self.turns[-1], **message}))

    def done(self, number: int = 1, **more: Any) -> None:
        """Say that the turn is over."""
        self.say(t="done", n=number, status="ok", exit_code=0, value="2", value_type="int", **more)

    def end(self) -> None:
        """Let go of everything."""
        self.connection.hang_up()
        self.guest.close()
        self.box.sandbox.close()


class OneStay:
    """A house with one place, or none."""

    def __init__(self, stay: GuestStay | None, packer: Packer | None) -> None:
        self.weights = Weights()
        self.packer = packer
        self._stay = stay

    def stay_at_once(self, *_asked: object) -> GuestStay | None:
        return self._stay


def house(stay: GuestStay | None, packer: Packer | None = None) -> House:
    """Return a house with that place."""
    return cast("House", OneStay(stay, packer))
