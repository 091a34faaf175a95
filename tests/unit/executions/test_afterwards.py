"""What nobody waits for is done all the same, in order, together, and before everything is closed."""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyexec.domain.errors import DiskFullError
from pyexec.executions import afterwards as module
from pyexec.executions.afterwards import MOST_WAITING, Afterwards
from tests.helpers.processes import eventually

NEVER = 3600.0


class Notes:
    """Work that is done together."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def write(self, items: list[int]) -> None:
        self.batches.append(items)


@pytest.fixture
def patient() -> Iterator[Afterwards]:
    """One that does nothing before it has to."""
    afterwards = Afterwards(pause=NEVER, longest=NEVER)
    yield afterwards
    afterwards.close()


def test_work_is_done_in_order_and_before_the_close_returns(patient: Afterwards) -> None:
    done = list[int]()
    for number in range(MOST_WAITING // 2):
        patient.do(lambda number=number: done.append(number))
    patient.close()
    assert done == list(range(MOST_WAITING // 2))


def test_what_is_given_without_a_pause_is_done_together_by_its_kind(patient: Afterwards) -> None:
    notes, others = Notes(), Notes()
    for number in range(10):
        patient.gather((notes if number % 2 else others).write, number)
    assert notes.batches == others.batches == []
    patient.close()
    assert (notes.batches, others.batches) == ([[1, 3, 5, 7, 9]], [[0, 2, 4, 6, 8]])


def test_it_is_done_after_a_pause() -> None:
    afterwards, done = Afterwards(pause=0.01, longest=NEVER), threading.Event()
    afterwards.do(done.set)
    assert done.wait(20)
    afterwards.close()


def test_it_is_done_in_time_where_there_is_no_pause() -> None:
    afterwards, done = Afterwards(pause=NEVER, longest=0.01), threading.Event()
    afterwards.do(done.set)
    assert done.wait(20)
    afterwards.close()


def test_it_is_done_when_much_waits(patient: Afterwards) -> None:
    notes = Notes()
    for number in range(MOST_WAITING):
        patient.gather(notes.write, number)
    eventually(lambda: notes.batches == [list(range(MOST_WAITING))])


def test_whoever_catches_up_has_it_done_at_once(patient: Afterwards) -> None:
    notes = Notes()
    for number in range(3):
        patient.gather(notes.write, number)
        patient.catch_up()
    patient.gather(notes.write, 3)
    assert notes.batches == [[0], [1], [2]], "what comes later waits again"


def test_whoever_catches_up_waits_for_what_was_given_before() -> None:
    afterwards, go, done = Afterwards(), threading.Event(), list[str]()
    afterwards.do(go.wait)
    afterwards.do(lambda: done.append("late"))
    threading.Timer(0.05, go.set).start()
    afterwards.catch_up()
    assert done == ["late"]
    afterwards.close()


def test_nobody_waits_for_ever(patient: Afterwards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CATCH_UP_SECONDS", 0.01)
    go = threading.Event()
    patient.do(go.wait)
    patient.catch_up()
    go.set()


def test_what_cannot_be_written_stops_nothing_that_follows(caplog: pytest.LogCaptureFixture) -> None:
    afterwards, done = Afterwards(), list[str]()

    def fail() -> None:
        raise DiskFullError("There is no room.")

    afterwards.do(fail)
    afterwards.do(lambda: done.append("next"))
    afterwards.close()
    assert done == ["next"]
    assert caplog.messages == ["something was not written down: There is no room."]


def test_one_that_fails_keeps_none_of_the_others_from_being_done(
    patient: Afterwards, caplog: pytest.LogCaptureFixture
) -> None:
    done = list[int]()

    def write(items: list[int]) -> None:
        if 2 in items:
            raise ValueError(f"{len(items)} at once")
        done.extend(items)

    for number in range(5):
        patient.gather(write, number)
    patient.close()
    assert done == [0, 1, 3, 4]
    assert [(one.levelno, one.exc_text and "1 at once" in one.exc_text) for one in caplog.records] == [
        (logging.ERROR, True)
    ]


def test_what_several_threads_give_is_done_once_each() -> None:
    afterwards, notes = Afterwards(pause=0.0001, longest=0.001), Notes()

    def give(thread: int) -> None:
        for number in range(500):
            afterwards.gather(notes.write, thread * 500 + number)
            if number % 100 == 99:
                afterwards.catch_up()
                assert thread * 500 + number in [one for batch in notes.batches for one in batch]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(give, range(4)))
    afterwards.close()
    assert sorted(one for batch in notes.batches for one in batch) == list(range(2000))


def test_work_that_comes_after_the_close_is_done_too(patient: Afterwards) -> None:
    done = list[str]()
    patient.close()
    patient.do(lambda: done.append("more"))
    patient.close()
    patient.close()
    assert done == ["more"]
