"""Who gets the next sandbox where there is not room for all."""

import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from pyexec.domain.errors import SandboxesFullError, WallUnavailableError
from pyexec.walls.bubblewrap import turnstile as turnstiles
from pyexec.walls.bubblewrap.turnstile import Admission, Ticket, Turnstile


class Rooms:
    """So many sandboxes fit; who got one is noted."""

    def __init__(self, room: int) -> None:
        self.lock = threading.Lock()
        self.room = room
        self.order: list[str] = []

    def take(self, owner: str, admission: Admission) -> Admission:
        with self.lock:
            if self.room == 0:
                raise SandboxesFullError("There is no room.")
            self.room -= 1
            self.order.append(owner)
        admission.had()
        return admission

    def give_back(self, admission: Admission) -> None:
        with self.lock:
            self.room += 1
        admission.gone()


def soon(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


class Asking:
    """Many who ask, each on a thread; who got a sandbox gives it back at once."""

    def __init__(self, turnstile: Turnstile, rooms: Rooms, pool: ThreadPoolExecutor) -> None:
        self.turnstile = turnstile
        self.rooms = rooms
        self.pool = pool

    def ask(self, owner: str) -> tuple[Ticket, "Future[None]"]:
        """Return once it stands in line."""
        ticket = Ticket(owner)
        asked = self.pool.submit(self._ask, ticket)
        soon(lambda: self.turnstile.before(ticket) is not None)
        return ticket, asked

    def _ask(self, ticket: Ticket) -> None:
        self.rooms.give_back(self.turnstile.admit(ticket, lambda admission: self.rooms.take(ticket.owner, admission)))


@contextmanager
def full(most: int = 1000, patience: float = 60.0) -> Generator[tuple[Asking, Admission]]:
    """A turnstile with one inside, and room for no more."""
    turnstile, rooms = Turnstile(most, patience), Rooms(1)
    with ThreadPoolExecutor(200) as pool:
        inside = turnstile.admit(Ticket("first"), lambda admission: rooms.take("first", admission))
        yield Asking(turnstile, rooms, pool), inside
        soon(lambda: not turnstile.crowded)


def test_owners_take_turns_and_each_has_an_order_of_their_own() -> None:
    with full() as (asking, inside):
        noisy = [asking.ask("noisy") for _ in range(100)]
        assert [asking.turnstile.before(ticket) for ticket, _asked in noisy] == list(range(100))
        quiet = [asking.ask(f"quiet-{number}")[0] for number in range(4)]
        assert [asking.turnstile.before(ticket) for ticket in quiet] == [1, 2, 3, 4]
        assert asking.turnstile.before(noisy[1][0]) == 5
        asking.rooms.give_back(inside)
    assert asking.rooms.order[:6] == ["first", "noisy", "quiet-0", "quiet-1", "quiet-2", "quiet-3"]
    assert asking.rooms.order[6:] == ["noisy"] * 99


def test_who_had_a_sandbox_lately_comes_after_who_had_not() -> None:
    with full() as (asking, inside):
        for owner in ("first", "first", "second"):
            asking.ask(owner)
        asking.rooms.give_back(inside)
    assert asking.rooms.order == ["first", "second", "first", "first"]


def test_who_gives_up_leaves_the_line_and_gets_nothing() -> None:
    with full() as (asking, inside):
        ticket, asked = asking.ask("one")
        asking.ask("two")
        ticket.give_up()
        with pytest.raises(SandboxesFullError, match="Nobody waits"):
            asked.result(60)
        asking.rooms.give_back(inside)
    assert asking.rooms.order == ["first", "two"]


def test_a_full_line_takes_no_more_and_says_how_many_wait() -> None:
    with full(most=2) as (asking, inside):
        for owner in ("one", "two"):
            asking.ask(owner)
        with pytest.raises(SandboxesFullError, match="2 executions wait for one already; at most 2 may"):
            asking.turnstile.admit(Ticket("three"), lambda admission: asking.rooms.take("three", admission))
        asking.rooms.give_back(inside)


def test_nobody_waits_longer_than_the_operator_says() -> None:
    with full(patience=0.01) as (asking, _inside), pytest.raises(SandboxesFullError, match="waited for a sandbox for"):
        asking.turnstile.admit(Ticket("one"), lambda admission: asking.rooms.take("one", admission))


def test_where_nobody_could_make_room_it_is_refused_at_once() -> None:
    turnstile, rooms = Turnstile(10, 1000.0), Rooms(0)
    with pytest.raises(SandboxesFullError, match="There is no room"):
        turnstile.admit(Ticket("one"), lambda admission: rooms.take("one", admission))


def test_room_is_made_before_anybody_waits() -> None:
    turnstile, rooms = Turnstile(10, 1000.0), Rooms(1)
    kept = [turnstile.admit(Ticket("idle"), lambda admission: rooms.take("idle", admission))]

    def give_up_idle() -> bool:
        if not kept:
            return False
        rooms.give_back(kept.pop())
        return True

    turnstile.make_room_by(give_up_idle)
    turnstile.admit(Ticket("one"), lambda admission: rooms.take("one", admission))
    assert (rooms.order, kept) == (["idle", "one"], [])


def test_room_that_becomes_idle_without_a_word_is_found_by_looking() -> None:
    idle = threading.Event()
    with full() as (asking, inside):

        def give_up_inside() -> bool:
            if not idle.is_set():
                return False
            idle.clear()
            asking.rooms.give_back(inside)
            return True

        asking.turnstile.make_room_by(give_up_inside)
        for owner in ("one", "two"):
            asking.ask(owner)
        idle.set()
    assert asking.rooms.order == ["first", "one", "two"]


def test_one_that_cannot_be_made_keeps_nobody_from_the_next() -> None:
    def fail(_admission: Admission) -> None:
        raise WallUnavailableError("It went wrong.")

    with full() as (asking, inside):
        ticket = Ticket("fails")
        failing = asking.pool.submit(asking.turnstile.admit, ticket, fail)
        with pytest.raises(WallUnavailableError):
            failing.result(60)
        asking.ask("one")
        asking.rooms.give_back(inside)
    assert asking.rooms.order == ["first", "one"]


def test_who_waits_for_room_looks_now_and_then_and_not_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstiles, "LOOK_SECONDS", 0.2)
    turnstile = Turnstile(most=10, patience=2.0)
    tried: list[float] = []

    def full(_admission: Admission) -> None:
        tried.append(time.monotonic())
        raise SandboxesFullError("There is no room.")

    inside = turnstile.admit(Ticket("a"), lambda admission: admission)
    with pytest.raises(SandboxesFullError):
        turnstile.admit(Ticket("b"), full)
    inside.gone()
    assert len(tried) <= 2 + 2.0 / 0.2
