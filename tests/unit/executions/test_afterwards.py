"""What nobody waits for is done all the same, in order, before everything is closed."""

import threading

from pyexec.domain.errors import DiskFullError
from pyexec.executions.afterwards import Afterwards


def test_work_is_done_in_order_and_before_the_close_returns() -> None:
    afterwards, done = Afterwards(), list[int]()
    for number in range(100):
        afterwards.do(lambda number=number: done.append(number))
    afterwards.close()
    assert done == list(range(100))


def test_whoever_catches_up_waits_for_what_was_given_before() -> None:
    afterwards, go, done = Afterwards(), threading.Event(), list[str]()
    afterwards.do(go.wait)
    afterwards.do(lambda: done.append("late"))
    go.set()
    afterwards.catch_up()
    assert done == ["late"]
    afterwards.close()


def test_what_cannot_be_written_stops_nothing_that_follows() -> None:
    afterwards, done = Afterwards(), list[str]()

    def fail() -> None:
        raise DiskFullError("There is no room.")

    afterwards.do(fail)
    afterwards.do(lambda: done.append("next"))
    afterwards.close()
    assert done == ["next"]


def test_work_that_comes_after_the_close_is_done_too() -> None:
    afterwards, done = Afterwards(), list[str]()
    afterwards.close()
    afterwards.do(lambda: done.append("more"))
    afterwards.close()
    assert done == ["more"]
