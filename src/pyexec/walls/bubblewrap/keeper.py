"""The keeper of sandboxes: a program that owns them and guards the executions in them, whoever asked for those.

It is started by the first server that needs it, with `KeeperOrders` on its standard input, belongs to nobody, and
leaves when it has had nothing to do and nobody to serve for a while. Servers connect to the socket in its folder. The
first byte they send says what they want:

    k   an execution is to be guarded: with the byte comes its lock, then its orders, as any keeper gets them
    b   a turn is to begin, if it can at once: then come its orders, and {"files": …} with what else is to be in its
        folder, which nobody waits for before it has begun; the answer is that of a keeper that guards it, or one
        frame: {"t": "later"} where it would have to wait, {"t": "failed", "why": …} where it cannot be noted down.
        Where it is over in a moment, `ended` says so by `noting`; after it comes {"t": "noted"}, or `failed` as above,
        and then the server may ask for something else
    s   something is to be done with sessions: then comes what, as one frame, and the answer is another
    h   nothing; the keeper stays while this connection does
"""

import fcntl
import logging
import os
import resource
import shutil
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

from pyexec.domain.errors import PyexecError
from pyexec.processes.promptness import be_prompt
from pyexec.sandbox.claims import LOCK
from pyexec.sandbox.guarding import Loop, Orders, encode
from pyexec.sandbox.handover import BEGIN
from pyexec.sandbox.places import SOCKET_NAME, bind_in, may_talk
from pyexec.storage.packed import Packer
from pyexec.walls.bubblewrap.beginning import Begun, UnnotedError, begin, note_down
from pyexec.walls.bubblewrap.families import Families, InsideOf
from pyexec.walls.bubblewrap.guard import SandboxGuard
from pyexec.walls.bubblewrap.moments import ends_in_a_moment, note_end
from pyexec.walls.bubblewrap.orders import UP, KeeperOrders
from pyexec.walls.bubblewrap.sessions.answers import reply
from pyexec.walls.bubblewrap.sessions.homes import Homes
from pyexec.walls.bubblewrap.sessions.sessions import Sessions
from pyexec.walls.bubblewrap.stays import House
from pyexec.walls.bubblewrap.turnstile import Turnstile

BACKLOG = 256
ORDERS_SECONDS = 30.0
FIRST_BYTES = 256 * 1024
IDLE_SECONDS = 120.0
ENDING = "The keeper of the sandboxes was asked to end."
UNWANTED = "The server that asked for it was gone before anything of it was noted down."
LOOK_SECONDS = 5.0
PAUSE_SECONDS = 0.01
WAITING = 4
"""So many threads at least wait for the next connection, and one more at most."""
TAKEN = 3
LIFE = "life"

_log = logging.getLogger(__name__)


class Keeper:
    """Serves connections until it is told to end, or has been idle for long enough."""

    def __init__(self, families: Families, sessions: Sessions, house: House, server: socket.socket, life: Path) -> None:
        self._families = families
        self._life = life
        self._sessions = sessions
        self._house = house
        self._server = server
        self._loop = Loop()
        self._lock = threading.Lock()
        self._guards: set[SandboxGuard] = set()
        self._staying: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._waiting = 0
        self._serving = 0
        self._sweeping: threading.Thread | None = None
        self._ending = False
        self._idle_since = time.monotonic()

    def run(self) -> None:
        """Serve; returns when everything has ended."""
        self._loop.watch_signals({signal.SIGTERM: self._on_terminate, signal.SIGINT: self._on_terminate})
        self._await_more()
        while not self._ends():
            self._loop.run_until(lambda: self._ending, time.monotonic() + LOOK_SECONDS)
            self._sweep()
        self._server.shutdown(socket.SHUT_RDWR)  # Closing it would not wake those who wait for a connection.
        with self._lock:
            guards, staying, threads = list(self._guards), list(self._staying), list(self._threads)
        for guard in guards:
            guard.end(ENDING)
        for connection in staying:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in (*threads, *([self._sweeping] if self._sweeping else ())):
            thread.join()
        self._server.close()
        self._sessions.close("lost: the keeper of its sandbox was asked to end")
        self._families.close()
        self._house.packer.close()

    def _on_terminate(self) -> None:
        self._ending = True

    def _ends(self) -> bool:
        """Tell whether it is to end, which it is too when it has been idle for long enough."""
        with self._lock:
            if self._serving or self._sessions.count():
                self._idle_since = time.monotonic()
            self._ending = self._ending or time.monotonic() - self._idle_since > IDLE_SECONDS
            return self._ending

    def _sweep(self) -> None:
        """Have fork servers end that nobody needs any more, which may take a moment."""
        busy = self._sweeping is not None and self._sweeping.is_alive()
        if not busy and self._families.has_idle():
            self._sweeping = threading.Thread(target=self._families.end_idle, name="idle")
            self._sweeping.start()

    def _await_more(self) -> None:
        """See that some threads wait for connections: who connects then has not to wait until one has started."""
        while True:
            with self._lock:
                if self._ending or self._waiting >= WAITING:
                    return
                thread = threading.Thread(target=self._accept, name="connection")
                try:
                    thread.start()
                except RuntimeError as error:  # There are too many; those that wait already go on.
                    _log.warning("nobody more can wait for connections: %s", error)
                    return
                self._waiting += 1
                self._threads.add(thread)

    def _accept(self) -> None:
        """Serve connections, one after the other, until there are others enough who wait for one."""
        be_prompt()
        while self._begin_serving(connection := self._next()):
            if connection is not None:
                try:
                    self._serve(connection)
                except Exception:  # noqa: BLE001 - others are served by this thread, and it counts
                    _log.exception("a server was not served to the end")
            if not self._end_serving():
                break
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _next(self) -> socket.socket | None:
        try:
            return self._server.accept()[0]
        except OSError:  # It has hung up already, or there are too many descriptors, or this is the end.
            time.sleep(PAUSE_SECONDS)
            return None

    def _begin_serving(self, connection: socket.socket | None) -> bool:
        with self._lock:
            self._waiting -= 1
            if self._ending:
                if connection is not None:
                    connection.close()  # Nothing has been taken over: whoever it is looks for another keeper.
                return False
            self._serving += 1
            alone = self._waiting == 0
        if alone:
            self._await_more()
        return True

    def _end_serving(self) -> bool:
        """Tell whether this thread is to wait for another connection."""
        with self._lock:
            self._serving -= 1
            self._idle_since = time.monotonic()
            if self._waiting > WAITING:
                return False
            self._waiting += 1
            return True

    def _serve(self, connection: socket.socket) -> None:
        try:
            if not may_talk(connection):
                return
            while self._serve_one(connection):
                continue
        except OSError as error:
            _log.warning("a server was not served to the end: %s", error)
        finally:
            connection.close()

    def _serve_one(self, connection: socket.socket) -> bool:
        """Do what a server wants next; tell whether it may want more."""
        words, fds = self._first_words(connection)
        request, rest = words[:1], words[1:]
        if request == b"k" and len(fds) == 1:
            self._guard(connection, fds[0], rest)
        elif request == BEGIN:
            return self._begin(connection, rest)
        elif request == b"s":
            self._answer(connection, rest)
        elif request == b"h":
            self._stay(connection)
        return False

    def _first_words(self, connection: socket.socket) -> tuple[bytes, list[int]]:
        """Return what a server wants, with the descriptors that came with it; nothing from one that says nothing.

        Servers hold connections, so that they need not connect when somebody waits.
        """
        connection.settimeout(ORDERS_SECONDS)
        with self._lock:
            self._staying.add(connection)
        try:
            if self._ending:
                return b"", []
            words, fds, _flags, _address = socket.recv_fds(connection, FIRST_BYTES, 1)
        except TimeoutError:
            return b"", []
        finally:
            with self._lock:
                self._staying.discard(connection)
        return words, fds

    def _guard(self, connection: socket.socket, lock: int, begun: bytes) -> None:
        try:
            os.set_inheritable(lock, False)
            orders = Orders(connection, begun).next(ORDERS_SECONDS)
            if orders is not None:
                self._run(SandboxGuard(orders, connection, self._house))
        finally:
            os.close(lock)

    def _begin(self, connection: socket.socket, words: bytes) -> bool:
        """Begin a turn, if it can at once; tell whether it is over, and its server may ask for the next."""
        said = Orders(connection, words)
        orders = said.next(ORDERS_SECONDS)
        if orders is None:
            return False
        try:
            begun = begin(orders, self._house, self._life)
            if begun is None:
                connection.sendall(encode({"t": "later"}))
                return False
            try:
                if ends_in_a_moment(begun):
                    return note_end(begun, self._house, connection, said)
                is_wanted = begun.hear_files(said)
            except BaseException:
                begun.give_up(self._house)
                raise
            self._go_on(begun, connection, said, None if is_wanted else UNWANTED)
        except UnnotedError as error:
            connection.sendall(encode({"t": "failed", "why": str(error)}))
        return False

    def _go_on(self, begun: Begun, connection: socket.socket, said: Orders, unwanted: str | None) -> None:
        """Guard a turn that takes longer; end it at once, where there is a reason why it is unwanted.

        Raises:
            UnnotedError: It cannot be noted down, and is ended.
        """
        lock = note_down(begun, self._house, self._life)
        try:
            try:
                guard = SandboxGuard(begun.orders, connection, self._house, begun, said)
            except BaseException as error:
                begun.give_up(self._house)
                begun.events.close()
                shutil.rmtree(begun.folder, ignore_errors=True)
                if isinstance(error, OSError):
                    raise UnnotedError(error.strerror) from error
                raise
            if unwanted is not None:
                guard.end(unwanted)
            self._run(guard)
        finally:
            begun.leave_lines()  # This process lives on, by which it stands there.
            os.close(lock)

    def _run(self, guard: SandboxGuard) -> None:
        with self._lock:
            self._guards.add(guard)
        if self._ending:
            guard.end(ENDING)
        try:
            guard.run()
        finally:
            with self._lock:
                self._guards.discard(guard)

    def _answer(self, connection: socket.socket, begun: bytes) -> None:
        asked = Orders(connection, begun).next(ORDERS_SECONDS)
        if asked is not None:
            reply(self._sessions, asked, connection)

    def _stay(self, connection: socket.socket) -> None:
        """Wait until a server hangs up."""
        with self._lock:
            self._staying.add(connection)
        connection.settimeout(None)
        try:
            while not self._ending and connection.recv(1):
                pass
        finally:
            with self._lock:
                self._staying.discard(connection)


def keep(orders: KeeperOrders, inside_of: InsideOf) -> int:
    """Be the keeper; return the exit status of the process that was started, which is not the one that stays.

    Says on standard output that it is up, or why it cannot be.
    """
    lock = os.open(orders.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return TAKEN  # There is one already.
    if os.fork():
        return 0
    # Each execution that waits or runs takes several descriptors.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())  # For people.
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    try:
        turnstile = Turnstile(orders.waiting, orders.patience)
        families = Families(orders, inside_of, lambda: turnstile.crowded)
        homes = Homes(families.workspaces, orders.limits.workspace, families.sandbox, families.give)
        sessions = Sessions(orders.folder, orders.sessions, homes, turnstile)
        turnstile.make_room_by(families.give_up_ready, families.give_up_unused, sessions.give_way)
        house = House(families, sessions, turnstile, Packer(orders.folder))
        keeper = Keeper(families, sessions, house, _listen(orders.folder), begin_life(orders.folder))
    except (PyexecError, OSError) as error:
        _say(error.sentence() if isinstance(error, PyexecError) else f"It cannot keep anything: {error}.")
        return 1
    _say(UP)
    keeper.run()
    with suppress(OSError):
        (orders.folder / SOCKET_NAME).unlink()
    return 0


def begin_life(folder: Path) -> Path:
    """Return a lock that is held as long as this process lives, and no other's: what has no lock yet stands by it.

    That of the folder is taken over by whoever keeps next, with all that leads to it.
    """
    path = folder / LIFE
    path.unlink(missing_ok=True)
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    return path


def _listen(folder: Path) -> socket.socket:
    with suppress(FileNotFoundError):
        (folder / SOCKET_NAME).unlink()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bind_in(folder, server)
    server.listen(BACKLOG)
    return server


def _say(line: str) -> None:
    """Tell whoever started this how it went, and let go of the pipe."""
    with suppress(OSError):
        os.write(1, f"{line}\n".encode())
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    os.close(null)
