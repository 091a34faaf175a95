"""Handing an execution over to a keeper of its own."""

import os
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

import anyio

from pyexec.domain.errors import KeeperUnavailableError, StateUnusableError
from pyexec.processes.launcher import Launcher
from pyexec.sandbox.keepers import KeeperConnection
from pyexec.sandbox.ports import Launch
from pyexec_guest import protocol

HANDOVER_SECONDS = 20.0
BEGIN = b"b"
"""What a keeper is sent before the orders for a turn that is to begin at once. A session's keeper may be of another
version than a server: it hangs up on a word that it does not know, so whatever changes what follows changes this."""


def hand_over(launcher: Launcher, launch: Launch, lock_fd: int) -> KeeperConnection:
    """Have a keeper take over; it guards the execution and can be reached when this returns.

    Raises:
        KeeperUnavailableError: None could be had; nothing was started.
    """
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            launcher.fork_keeper(theirs, lock_fd)
        return give_orders(ours, launch)
    except BaseException:
        ours.close()
        raise


def give_orders(connection: socket.socket, launch: Launch) -> KeeperConnection:
    """Tell a keeper that has the execution's lock what to run; it guards and can be reached when this returns.

    Raises:
        KeeperUnavailableError: It did not take over; nothing was started.
    """
    keeper = KeeperConnection(connection)
    with _taking_over(launch):
        _send(connection, launch)
        while (message := keeper.next_within(HANDOVER_SECONDS)) is not None:
            if message.get("t") == "phase":  # It listens: whoever looks for it from now on finds it.
                return keeper
        raise ConnectionError("it ended")


def orders_to_begin(launch: Launch) -> bytes:
    """Return what a keeper is sent that is to begin a turn at once."""
    return BEGIN + protocol.encode(_orders(launch))


def ask_to_begin(
    connection: socket.socket, orders: bytes, take_back: Callable[[socket.socket], None], *, may_wait: bool
) -> KeeperConnection:
    """Ask a keeper to begin a turn at once; `has_begun` hears the answer. See `KeeperConnection` for `take_back`.

    Raises:
        BlockingIOError: It may not wait, and the keeper does not read all of it at once.
        OSError: It has hung up, or does not read.
    """
    connection.settimeout(HANDOVER_SECONDS if may_wait else 0)
    if may_wait:
        connection.sendall(orders)
    elif connection.send(orders) != len(orders):
        raise BlockingIOError
    return KeeperConnection(connection, take_back)


def give_files(keeper: KeeperConnection, files: Mapping[str, str]) -> None:
    """Tell a keeper that was asked to begin what is to be in the execution's folder, by names in it. Does not block."""
    keeper.tell({"files": [*files.items()]})


async def has_begun(keeper: KeeperConnection) -> bool:
    """Tell whether a keeper that was asked to begin has; if not, the turn would have to wait, or the keeper is gone.

    Raises:
        StateUnusableError: It could not be noted down, and has been ended.
        KeeperUnavailableError: It does not answer.
    """
    try:
        with anyio.fail_after(HANDOVER_SECONDS, shield=True):  # It may run, and then it has to be noted.
            await keeper.all_told()
            said = await keeper.first()
    except OSError as error:
        raise KeeperUnavailableError(f"The keeper of sandboxes does not answer: {error}.", hint="Try again.") from error
    if said is not None and said.get("t") == "failed":
        why = said.get("why")
        raise StateUnusableError(f"The state folder cannot be written: {why}. What had begun was ended.")
    return said is not None and said.get("t") in ("hello", "ended")


@contextmanager
def _taking_over(launch: Launch) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise KeeperUnavailableError(
            f"The keeper of execution {launch.execution_id} did not take over: {error}.",
            hint="Nothing was started; try again, and see the log in the state folder if this repeats.",
        ) from error


def _send(connection: socket.socket, launch: Launch) -> None:
    connection.settimeout(HANDOVER_SECONDS)
    connection.sendall(protocol.encode(_orders(launch)))


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
        "code": launch.code,
        "room": launch.room,
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
