"""Handing an execution over to a keeper of its own."""

import os
import socket

from pyexec.domain.errors import KeeperUnavailableError
from pyexec.processes.launcher import Launcher
from pyexec.sandbox.ports import Launch
from pyexec_guest import protocol

HANDOVER_SECONDS = 20.0


def hand_over(launcher: Launcher, launch: Launch) -> None:
    """Have a keeper take over; it guards the execution and can be reached when this returns.

    Raises:
        KeeperUnavailableError: None could be had; nothing was started.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            launcher.fork_keeper(theirs, launch.lock_fd)
        give_orders(ours, launch)


def give_orders(connection: socket.socket, launch: Launch) -> None:
    """Tell a keeper that has the execution's lock what to run; it guards and can be reached when this returns.

    Raises:
        KeeperUnavailableError: It did not take over; nothing was started.
    """
    connection.settimeout(HANDOVER_SECONDS)
    try:
        connection.sendall(protocol.encode(_orders(launch)))
        _await_guard(connection)
    except (OSError, protocol.ProtocolError) as error:
        raise KeeperUnavailableError(
            f"The keeper of execution {launch.execution_id} did not take over: {error}.",
            hint="Nothing was started; try again, and see the log in the state folder if this repeats.",
        ) from error


def encode(message: dict[str, object]) -> bytes:
    """Return a message to a keeper as it is sent."""
    return protocol.encode(message)


def receive_answer(connection: socket.socket, timeout: float) -> dict[str, object] | None:
    """Return the one frame that a keeper answers with; None when it says none.

    Raises:
        OSError: It does not answer in time.
    """
    connection.settimeout(timeout)
    decoder = protocol.Decoder(protocol.GUEST_FRAME + protocol.SMALL_FRAME)
    try:
        while data := connection.recv(65536):
            for message in decoder.feed(data):
                return message
    except protocol.ProtocolError:
        return None
    return None


def receive_with_descriptors(connection: socket.socket, timeout: float) -> tuple[dict[str, object], list[int]]:
    """Return a short answer of a keeper, and the descriptors that came with it, which are the caller's from now on.

    Raises:
        OSError: It does not answer in time, or not so.
    """
    connection.settimeout(timeout)
    decoder = protocol.Decoder()
    found: list[int] = []
    messages: list[dict[str, object]] = []
    try:
        while not messages:
            data, fds, _flags, _address = socket.recv_fds(connection, 65536, 1)
            found += fds
            for fd in fds:
                os.set_inheritable(fd, False)
            messages = decoder.feed(data)
            if not data:
                break
    except BaseException as error:
        for fd in found:
            os.close(fd)
        if isinstance(error, protocol.ProtocolError):
            raise ConnectionError(str(error)) from error
        raise
    if not messages:
        raise ConnectionError("the keeper has hung up")
    return messages[0], found


def _orders(launch: Launch) -> dict[str, object]:
    return {
        "v": protocol.VERSION,
        "id": launch.execution_id,
        "owner": launch.owner,
        "folder": os.fspath(launch.folder),
        "lines": [(os.fspath(line.folder), line.entry, line.slots) for line in launch.lines],
        "session": launch.session,
        "folders": [(one.place, os.fspath(one.path)) for one in launch.folders],
        "usual": launch.usual,
        "argv": launch.argv,
        "python_at": launch.python_at,
        "guest": launch.guest,
        "prepare": [{"argv": one.argv, "env": dict(one.env), "stdin": one.stdin} for one in launch.prepare],
        "prepare_timeout": launch.prepare_timeout,
        "cwd": launch.cwd,
        "env": dict(launch.env),
        "stdin": launch.stdin,
        "timeout": launch.timeout,
        "head_bytes": launch.head_bytes,
        "tail_bytes": launch.tail_bytes,
    }


def _await_guard(connection: socket.socket) -> None:
    """Wait until the keeper listens, so that whoever looks for it from now on finds it."""
    decoder = protocol.Decoder()
    while True:
        data = connection.recv(65536)
        if not data:
            raise ConnectionError("it ended")
        if any(message.get("t") == "phase" for message in decoder.feed(data)):
            return
