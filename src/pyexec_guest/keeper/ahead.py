"""A process forked before anybody knows what it is to run: forking is most of what starting a program takes."""

import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any, NoReturn

from pyexec_guest import protocol
from pyexec_guest.keeper.child import Child, StartError, become, output_pipe, set_stage, text_file


class ForkedAhead:
    """Such a process: a child of this one, with pipes for its output, that waits to be told what to become.

    It holds nothing of what this process opens later, and dies with it.

    Attributes:
        reaped: To be set by whoever reaps it; its number means nothing from then on.
    """

    def __init__(self, not_for_it: "Sequence[socket.socket]") -> None:
        """Fork it; `not_for_it` is what is open here and must not be held by it."""
        self.reaped = False
        self._waits = True
        ours, theirs = socket.socketpair()
        self._stdout, out_write = output_pipe()
        self._stderr, err_write = output_pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            for one in (ours, *not_for_it):
                one.close()
            _wait_and_become(theirs, parent, (self._stdout, self._stderr), (out_write, err_write))
        self._channel = ours
        for fd in (theirs.detach(), out_write, err_write):
            os.close(fd)

    def become(
        self, argv: "Sequence[str]", *, cwd: str, env: "Mapping[str, str]", stdin: "str | None"
    ) -> "Child | None":
        """Have it become a program, as `child.start` does; None where it is gone: then nothing was started.

        Raises:
            StartError: The working directory or the program is not there, or may not be used.
        """
        orders = protocol.encode({"argv": list(argv), "cwd": cwd, "env": dict(env)})
        try:
            with text_file(stdin) if stdin else nullcontext() as source:
                self._send(orders, source.fileno() if source else None)
            failure = self._answer()
        except OSError:
            self.release()
            return None
        if failure:
            self.release()
            raise StartError(failure.decode("utf-8", "replace"))
        self._waits = False
        self._channel.close()
        return Child(pid=self.pid, stdout=self._stdout, stderr=self._stderr)

    def release(self) -> None:
        """Let it go, unless it has become something."""
        if not self._waits:
            return
        self._waits = False
        self._channel.close()
        for fd in (self._stdout, self._stderr):
            os.close(fd)
        if not self.reaped:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)

    def _send(self, orders: bytes, source: "int | None") -> None:
        if source is not None:
            sent = socket.send_fds(self._channel, [orders], [source])
            orders = orders[sent:]
        self._channel.sendall(orders)

    def _answer(self) -> bytes:
        """Return why it could not become the program; nothing when it has."""
        parts: list[bytes] = []
        while part := self._channel.recv(4096):
            parts.append(part)
        return b"".join(parts)


def _wait_and_become(
    channel: socket.socket, parent: int, reads: "tuple[int, int]", writes: "tuple[int, int]"
) -> NoReturn:
    try:
        set_stage(parent)
        with open(os.devnull, "rb") as nothing:
            for number, fd in enumerate((nothing.fileno(), *writes)):
                os.dup2(fd, number)
        for fd in (*reads, *writes):
            os.close(fd)
        orders = _receive(channel)
        if orders is not None:
            become(orders["argv"], orders["cwd"], orders["env"], channel.fileno())
    except BaseException as error:  # noqa: BLE001 - nothing may escape into a second copy of the keeper
        channel.send(f"could not start: {type(error).__name__}".encode())
    finally:
        os._exit(127)


def _receive(channel: socket.socket) -> "dict[str, Any] | None":
    """Wait for what to become; a descriptor that comes with it is for standard input."""
    decoder = protocol.Decoder(protocol.MAX_FRAME)
    while True:
        data, fds, _flags, _address = socket.recv_fds(channel, 1024 * 1024, 1)
        for fd in fds:
            os.dup2(fd, 0)
            os.close(fd)
        if not data:
            return None
        messages = decoder.feed(data)
        if messages:
            return messages[0]
