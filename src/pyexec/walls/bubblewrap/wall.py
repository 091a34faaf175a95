"""The bubblewrap wall, as a server sees it: executions are handed over to the keeper of the sandboxes."""

import os
import socket
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyexec.domain.errors import KeeperUnavailableError, SandboxNotMadeError, WallUnavailableError
from pyexec.processes.programs import start_detached
from pyexec.sandbox.handover import (
    ask_to_begin,
    encode,
    give_orders,
    orders_to_begin,
    receive_answer,
    receive_with_descriptors,
)
from pyexec.sandbox.keepers import KeeperConnection
from pyexec.sandbox.places import connect_in
from pyexec.sandbox.ports import Launch, OpenWorkspace
from pyexec.storage.locks import held
from pyexec.walls.bubblewrap.orders import UP, KeeperOrders

START_SECONDS = 60.0
CONNECT_SECONDS = 20.0
ASK_SECONDS = 30.0
ATTEMPTS = 2
MOST_HELD = 16
"""So many connections to keepers are held for who comes next; they hang up where one is not used for half a minute."""


class BubblewrapWall:
    """Runs executions in sandboxes, which the keeper of the sandboxes owns; starts that when it is not there.

    May be used from several threads.

    Args:
        orders: What the keeper is told.
        program: The module that is the keeper.
    """

    name = "bubblewrap"

    def __init__(self, orders: KeeperOrders, program: str) -> None:
        self._orders = orders
        self._program = program
        self._lock = threading.Lock()
        self._staying: socket.socket | None = None
        self._holding = threading.Lock()  # Never for longer than a moment: it is taken on the event loop.
        self._held: list[tuple[Path | None, socket.socket]] = []
        self._closed = False

    def launch(self, launch: Launch, lock_fd: int) -> KeeperConnection:
        """See `Wall.launch`.

        Raises:
            WallUnavailableError: The wall cannot be had.
        """
        for attempt in range(1, ATTEMPTS + 1):
            connection = self._connect_to(launch.keeper)
            try:
                socket.send_fds(connection, [b"k"], [lock_fd])
                return give_orders(connection, launch)
            except (OSError, KeeperUnavailableError):
                connection.close()
                if attempt == ATTEMPTS:
                    raise
                # It was just about to leave, having had nothing to do.
        raise AssertionError

    def begin(self, launch: Launch, *, may_wait: bool) -> KeeperConnection | None:
        """See `Wall.begin`."""
        keeper, orders = launch.keeper, orders_to_begin(launch)
        while connection := self._take_held(keeper) or (self._try_connect(keeper) if may_wait else None):
            try:
                return ask_to_begin(connection, orders, lambda again: self._hold(keeper, again), may_wait=may_wait)
            except BlockingIOError:  # It is too long for that.
                connection.close()
                return None
            except OSError:  # It has hung up, or is just about to leave.
                connection.close()
        return None

    def _take_held(self, keeper: Path | None) -> socket.socket | None:
        """Return a connection that is held, on which its keeper waits for what comes next, or has hung up."""
        with self._holding:
            # The latest: the fewer are in use, the sooner the keeper can let go of the others.
            found = (at for at in reversed(range(len(self._held))) if self._held[at][0] == keeper)
            at = next(found, None)
            return None if at is None else self._held.pop(at)[1]

    def _hold(self, keeper: Path | None, connection: socket.socket) -> None:
        """Hold a connection for the next turn."""
        with self._holding:
            if not self._closed:
                self._held.append((keeper, connection))
                if len(self._held) <= MOST_HELD:
                    return
                _whose, connection = self._held.pop(0)
        connection.close()

    def close(self) -> None:
        """Let go of the keeper, which leaves when nobody needs it any more."""
        with self._holding:
            self._closed = True
            for _keeper, connection in self._held:
                connection.close()
            self._held.clear()
        with self._lock:
            if self._staying is not None:
                self._staying.close()
                self._staying = None

    def ask(self, asked: Mapping[str, object], keeper: Path | None = None) -> Mapping[str, Any]:
        """See `SessionKeeper.ask`."""
        connection = self._try_connect(keeper)
        if connection is None:
            return {}
        with connection:
            try:
                connection.sendall(b"s" + encode(dict(asked)))
                return receive_answer(connection, ASK_SECONDS) or {}
            except OSError:
                return {}

    def open_workspace(self, folder: Path, keeper: Path | None = None) -> OpenWorkspace:
        """See `SessionKeeper.open_workspace`."""
        with self._connected(keeper) as connection:
            connection.sendall(b"s" + encode({"op": "workspace", "folder": str(folder)}))
            answer, fds = receive_with_descriptors(connection, ASK_SECONDS)
        if len(fds) != 1:
            raise SandboxNotMadeError(str(answer.get("refused") or "The workspace cannot be had."), hint="Try again.")
        room, used, allowed = (answer.get(name) for name in ("room", "used", "allowed"))
        return OpenWorkspace(
            fd=fds[0],
            room=room if isinstance(room, int) else None,
            used=used if isinstance(used, int) else 0,
            allowed=allowed if isinstance(allowed, int) else sys.maxsize,
        )

    @contextmanager
    def _connected(self, keeper: Path | None) -> Generator[socket.socket]:
        with self._connect_to(keeper) as connection:
            yield connection

    def _connect_to(self, keeper: Path | None) -> socket.socket:
        # Where the keeper of a session is gone, so is the session: any keeper can tell.
        return (self._try_connect(keeper) if keeper is not None else None) or self._connect()

    def _connect(self) -> socket.socket:
        found = self._try_connect()
        if found is not None and self._staying is not None:
            return found
        with self._lock:
            if found is None:
                self._start()
                found = self._try_connect()
            if found is None:
                raise WallUnavailableError(
                    "The keeper of the sandboxes has ended as soon as it was up.", hint=f"See {self._log}."
                )
            self._stay()
        return found

    def _stay(self) -> None:
        """Hold a connection, so that the keeper does not leave while this server may need it."""
        if self._staying is not None:
            self._staying.close()
        self._staying = self._try_connect()
        if self._staying is not None:
            self._staying.sendall(b"h")

    def _try_connect(self, folder: Path | None = None) -> socket.socket | None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_SECONDS)
        try:
            connect_in(folder or self._orders.folder, connection)
        except OSError:
            connection.close()
            return None
        return connection

    def _start(self) -> None:
        """Start the keeper, unless another server has meanwhile."""
        folder = self._orders.folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with held(folder / "starting"):
            probe = self._try_connect()
            if probe is not None:
                probe.close()
                return
            log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                said = start_detached(
                    [sys.executable, "-I", "-m", self._program],
                    env=self._orders.environ,
                    stdin=self._orders.to_json().encode(),
                    log=log,
                    timeout=START_SECONDS,
                )
            except OSError as error:
                raise WallUnavailableError(
                    f"The keeper of the sandboxes cannot be started: {error.strerror}."
                ) from error
            finally:
                os.close(log)
        if said != UP:
            raise WallUnavailableError(said or "The keeper of the sandboxes does not start.", hint=f"See {self._log}.")

    @property
    def _log(self) -> Path:
        return self._orders.folder / "keeper.log"
