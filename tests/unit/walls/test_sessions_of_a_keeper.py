"""What a keeper's sessions do while others are waited for."""

import os
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pyexec.domain.errors import SandboxesFullError, SessionsFullError
from pyexec.domain.sessions import SessionLimits
from pyexec.storage.sessions import SessionFolder
from pyexec.walls.bubblewrap.folders import Folder
from pyexec.walls.bubblewrap.sessions import answers
from pyexec.walls.bubblewrap.sessions.homes import Home, Homes
from pyexec.walls.bubblewrap.sessions.live import LiveSession
from pyexec.walls.bubblewrap.sessions.sessions import Sessions
from pyexec.walls.bubblewrap.turnstile import Admission, Ticket, Turnstile
from pyexec.walls.bubblewrap.workspaces import Workspace

PREFIX = Path("/environment")


class Plain(Workspace):
    """A folder; whoever wants to know how much is in it waits until the test lets them."""

    size = 1000
    hard = False

    def __init__(self, path: Path, look: threading.Event) -> None:
        path.mkdir(exist_ok=True)
        self.root = os.open(path, os.O_PATH | os.O_DIRECTORY)
        self.looking = threading.Event()
        self._look = look

    @contextmanager
    def opened(self) -> Generator[Folder]:
        raise NotImplementedError
        yield

    def watch(self, box: Any) -> None:
        raise NotImplementedError

    def used_below(self, root: int) -> int:
        os.stat(root)
        self.looking.set()
        assert self._look.wait(60)
        return 100

    def last_used(self) -> int:
        return 100

    def close(self) -> None:
        os.close(self.root)

    def remove(self) -> None:
        raise NotImplementedError


class FakeBox:
    """A sandbox of which nothing is but what it is spoken with by."""

    reason = None

    def __init__(self, room: Admission) -> None:
        self._room = room
        self._guest, ours = socket.socketpair()
        pipes = [os.pipe() for _ in range(3)]
        self._ends = [end for _read, end in pipes]
        reads = [read for read, _end in pipes]
        self.sandbox = SimpleNamespace(socket=ours, output=tuple(reads[:2]), news=reads[2])

    def wait_ended(self, _seconds: float) -> None:
        return None

    def kill(self) -> None:
        return

    def close(self) -> None:
        self._guest.close()
        self.sandbox.socket.close()
        for fd in (*self._ends, *self.sandbox.output, self.sandbox.news):
            os.close(fd)
        self._room.gone()


class FakeHomes:
    """Makes homes as long as there is room."""

    def __init__(self) -> None:
        self.room = 0
        self.look = threading.Event()

    def make(self, folder: SessionFolder, _prefix: Path, _shared: Sequence[Folder], room: Admission) -> Home:
        if self.room <= 0:
            raise SandboxesFullError("There is no room.")
        self.room -= 1
        room.had()
        return Home(cast("Any", FakeBox(room)), Plain(folder.path / "workspace", self.look))


class House:
    """Sessions of a keeper, two of which one owner may have."""

    def __init__(self, root: Path, pool: ThreadPoolExecutor) -> None:
        self.homes = FakeHomes()
        self.turnstile = Turnstile(100, 60)
        self.sessions = Sessions(root, SessionLimits(live=2), cast("Homes", self.homes), self.turnstile)
        self.tickets: list[Ticket] = []
        self.asked: list[Future[LiveSession]] = []
        self._root = root
        self._pool = pool

    def folder(self, owner: str, name: str) -> SessionFolder:
        folder = SessionFolder(self._root / owner / name)
        folder.create(name, owner, python=None, environment=None)
        return folder

    def ask(self, name: str, owner: str = "ada") -> "Future[LiveSession]":
        ticket = Ticket(owner)
        self.tickets.append(ticket)
        self.asked.append(self._pool.submit(self.sessions.enter, ticket, self.folder(owner, name), PREFIX))
        return self.asked[-1]

    def close(self) -> None:
        """End all, as those would who have entered them."""
        self.homes.look.set()
        for ticket in self.tickets:
            ticket.give_up()
        entered = [asked.result(60) for asked in self.asked if asked.exception(60) is None]
        for live in entered:
            if live.busy and live.ended is None:
                self.sessions.dismiss(live, "the test is over")
        self.sessions.close("the test is over")

    def enter(self, name: str, owner: str = "ada") -> LiveSession:
        self.homes.room += 1
        return self.ask(name, owner).result(60)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with ThreadPoolExecutor(8) as pool:
        made = House(tmp_path, pool)
        yield made
        made.close()


def soon(condition: Callable[[], object]) -> None:
    waiting = threading.Event()
    for _ in range(6000):
        if condition():
            return
        waiting.wait(0.01)
    raise AssertionError("it did not come true")


def test_a_workspace_is_handed_out_without_keeping_other_sessions_waiting(house: House) -> None:
    live, other = house.enter("one"), house.enter("other")
    house.sessions.leave(live)
    house.sessions.leave(other)
    workspace = cast("Plain", live.home.workspace)
    ours, theirs = socket.socketpair()
    asked = {"op": "workspace", "folder": str(live.folder.path)}
    with ours, theirs:
        answering = threading.Thread(target=answers.reply, args=(house.sessions, asked, theirs))
        answering.start()
        assert workspace.looking.wait(60)
        # As long as it looks, which for many files takes long, everybody else goes on, and this one may even end.
        taken = house.sessions.enter_at_once(other.folder, other.prefix)
        assert taken is other
        house.sessions.leave(other)
        house.homes.look.set()
        answering.join()
        _told, fds, _flags, _address = socket.recv_fds(ours, 4096, 1)
        assert os.path.samestat(os.fstat(fds[0]), os.stat(live.folder.path / "workspace"))
        os.close(fds[0])


def test_those_that_wait_for_a_sandbox_count_among_the_sessions_that_an_owner_may_have(house: House) -> None:
    house.enter("at work")
    waiting = house.ask("waiting")
    soon(lambda: house.turnstile.before(house.tickets[-1]) is not None)
    with pytest.raises(SessionsFullError, match="2 sessions are at work; at most 2 may live"):
        house.ask("one too many").result(60)

    house.tickets[1].give_up()
    with pytest.raises(SandboxesFullError):
        waiting.result(60)
    assert house.enter("another").ended is None


def test_what_is_idle_makes_room_once_for_each_that_comes(house: House) -> None:
    house.enter("at work", "bob")
    for name in ("one", "two"):
        house.sessions.leave(house.enter(name))
    house.homes.look.set()
    coming = [house.ask(name) for name in ("three", "four")]
    soon(lambda: all(house.turnstile.before(ticket) is not None for ticket in house.tickets[-2:]))
    with pytest.raises(SessionsFullError):
        house.ask("five").result(60)
    house.homes.room = 2
    assert {one.result(60).folder.path.name for one in coming} == {"three", "four"}
    assert house.sessions.count() == 3
