"""What a client is told of a job's progress: numbers that rise, not too often, and nothing unless it asked."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastmcp import Context

from pyexec.domain.progress import Progress, make_progress
from pyexec.mcp import progress as module
from pyexec.mcp.progress import Reporter, job, reporter_of_call

Note = tuple[float, float | None, str | None]


class Listening:
    """A client that listens, and a clock that a test moves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, asked: bool = True) -> None:
        self.notes: list[Note] = []
        self.now = 1000.0
        self.request_context = SimpleNamespace(meta={"progressToken": 1} if asked else {})
        monkeypatch.setattr(module.anyio, "current_time", lambda: self.now)
        self.reporter = Reporter(cast("Context", self), job("7"))

    async def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.notes.append((progress, total, message))

    async def hear(self, current: float, total: float | None = None, message: str | None = None, **how: Any) -> None:
        await self.reporter.tell(Progress(current=current, total=total, message=message), **how)

    def rises(self) -> bool:
        return all(before[0] < after[0] for before, after in pairwise(self.notes))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Listening:
    return Listening(monkeypatch)


async def test_the_id_comes_first_then_what_is_counted(client: Listening) -> None:
    await client.reporter.begin()
    client.now += 1
    await client.hear(3, 10, "files")
    client.now += 1
    await client.hear(4)
    assert client.notes == [(0, None, "job 7"), (3, 10, "job 7: files"), (4, None, "job 7: running")]


async def test_at_most_two_a_second_are_told_and_the_last_one_always(client: Listening) -> None:
    await client.reporter.begin()
    for number in range(1, 121):
        client.now += 0.01
        await client.hear(number, 200)
    assert [note[0] for note in client.notes] == pytest.approx([0, 50, 100], abs=3)
    await client.hear(120, 200, last=True)
    assert client.notes[-1][0] == 120


async def test_what_begins_anew_goes_on_from_what_was_done(client: Listening) -> None:
    await client.reporter.begin()
    for current, total in ((9, 10), (1, 20), (20, 20), (0, 5), (5, 5)):
        client.now += 1
        await client.hear(current, total)
    assert [(note[0], note[1]) for note in client.notes][1:3] == [(9, 10), (10, 29)]
    assert client.notes[-1][:2] == pytest.approx((34, 34), abs=0.1)
    assert client.rises()


async def test_signs_of_life_come_every_five_seconds_and_stay_below_what_is_counted_later(client: Listening) -> None:
    await client.reporter.begin()
    for _ in range(30):
        client.now += 1
        await client.reporter.still("running")
    assert len(client.notes) == 1 + 6
    await client.reporter.still("installing", news=True)
    assert client.notes[-1][2] == "job 7: installing"
    client.now += 1
    await client.hear(1, 10)
    assert client.notes[-1][:2] == (1, 10)
    client.now += 5
    await client.reporter.still("running for 36 s")
    assert client.notes[-1][1] == 10
    assert client.rises()


async def test_numbers_that_cannot_rise_any_more_are_not_told(client: Listening) -> None:
    await client.hear(1e300)
    client.now += 5
    await client.reporter.still("running")
    assert len(client.notes) == 1


async def test_a_client_that_did_not_ask_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Listening(monkeypatch, asked=False)
    await client.reporter.begin()
    await client.hear(1, 2, last=True)
    await client.reporter.still("running", news=True)
    assert (client.reporter.wanted, client.notes) == (False, [])


async def test_outside_of_a_call_nobody_is_told() -> None:
    reporter = reporter_of_call("7")
    await reporter.begin()
    await reporter.tell(Progress(current=1))
    assert not reporter.wanted


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ((1, 2, "a"), Progress(current=1, total=2, message="a")),
        ((1, 0, ""), Progress(current=1)),
        ((1, float("nan"), " \n "), Progress(current=1)),
        ((True, "2", "\x1b]0;title\x07x\ty"), Progress(current=1, total=2, message="x y")),
        ((-1, 2, ""), None),
        ((float("inf"), 2, ""), None),
        ((10**400, 2, ""), None),
        ((None, 2, ""), None),
    ],
)
def test_progress_is_made_of_numbers_that_make_sense(given: Any, made: Progress | None) -> None:
    assert make_progress(*given) == made
