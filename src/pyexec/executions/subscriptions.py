"""Many who follow what executions print, each from where they are: one look at the keeper serves all of them."""

import codecs
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from pyexec.domain.cursors import Cursor
from pyexec.domain.executions import Execution, State, StreamName
from pyexec.domain.principals import Principal
from pyexec.storage.follow import LogFollower, Piece

if TYPE_CHECKING:  # It brings the database along, which is loaded beside answering.
    from pyexec.executions.service import ExecutionService

READERS = 8
"""How many read from the disk at once, however many follow."""

PAUSE_SECONDS = 0.05
"""Between two looks of one follower: a program that prints all the time is followed in steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a follower is told: a state, or text of a stream; `cursor` is where reading goes on after it.

    `gap` bytes before the text are no longer kept. After the state of one that has `ended` nothing more comes.
    """

    cursor: Cursor
    state: State | None = None
    ended: Execution | None = None
    stream: StreamName = "stdout"
    text: str = ""
    gap: int = 0


@dataclass(slots=True)
class _Topic:
    """One execution that is followed."""

    execution: Execution
    news: anyio.Event = field(default_factory=anyio.Event)
    followers: int = 0
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def tell(self) -> None:
        self.news.set()
        self.news = anyio.Event()


class Subscriptions:
    """Lets any number follow any execution.

    Args:
        service: What is followed.
        tasks: Where the looking is done, one task for each execution that somebody follows.
    """

    def __init__(self, service: "ExecutionService", tasks: TaskGroup) -> None:
        self._service = service
        self._tasks = tasks
        self._topics: dict[str, _Topic] = {}
        self._readers = anyio.CapacityLimiter(READERS)

    async def follow(self, principal: Principal, execution_id: str, since: Cursor | None = None) -> AsyncIterator[Step]:
        """Yield what an execution prints from a cursor on, and its states, until it has ended.

        Raises:
            NotFoundError: This principal has no such execution.
        """
        return self._steps(await self._service.get(principal, execution_id), since or Cursor())

    async def _steps(self, execution: Execution, since: Cursor) -> AsyncIterator[Step]:
        reader = _Reader(LogFollower(await self._service.folder_of(execution), since), since)
        told: State | None = None
        with self._topic(execution) as topic:
            while True:
                # Asked before reading: what is written up to an end is read after it.
                news, known = topic.news, topic.execution
                if known.state != told and not known.ended:
                    told = known.state
                    yield Step(cursor=reader.cursor, state=told)
                pieces = reader.new(final=known.ended)
                while (step := await run_sync(next, pieces, None, limiter=self._readers)) is not None:
                    yield step
                if known.ended:
                    yield Step(cursor=reader.cursor, state=known.state, ended=known)
                    return
                await news.wait()
                await anyio.sleep(PAUSE_SECONDS)

    @contextmanager
    def _topic(self, execution: Execution) -> Generator[_Topic]:
        topic = self._topics.get(execution.id)
        if topic is None:
            topic = self._topics[execution.id] = _Topic(execution)
            if not execution.ended:
                self._tasks.start_soon(self._watch, topic)
        topic.followers += 1
        try:
            yield topic
        finally:
            topic.followers -= 1
            if not topic.followers:
                topic.scope.cancel()
                del self._topics[execution.id]

    async def _watch(self, topic: _Topic) -> None:
        def heard(what: str) -> None:
            if what == "running":
                topic.execution = replace(topic.execution, state="running")
            topic.tell()

        with topic.scope:
            topic.execution = await self._service.wait_for(topic.execution, None, heard)
            topic.tell()


class _Reader:
    """Reads a log in whole characters."""

    def __init__(self, follower: LogFollower, since: Cursor) -> None:
        self._follower = follower
        self._decoders: dict[StreamName, codecs.IncrementalDecoder] = {
            "stdout": _decoder(),
            "stderr": _decoder(),
        }
        self._read: dict[StreamName, int] = {"stdout": since.stdout, "stderr": since.stderr}

    @property
    def cursor(self) -> Cursor:
        """Where reading goes on: what begins a character that is not whole yet is read again."""
        return Cursor(stdout=self._position("stdout"), stderr=self._position("stderr"))

    def new(self, *, final: bool) -> Iterator[Step]:
        """Yield what is new, with the rest of characters that will not become whole when it is `final`."""
        for piece in self._follower.new():
            text = self._decoded(piece)
            if text or piece.gap:
                yield Step(cursor=self.cursor, stream=piece.stream, text=text, gap=piece.gap)
        if not final:
            return
        for stream, decoder in self._decoders.items():
            if rest := decoder.decode(b"", final=True):
                yield Step(cursor=self.cursor, stream=stream, text=rest)

    def _decoded(self, piece: Piece) -> str:
        self._read[piece.stream] += piece.gap + len(piece.data)
        if piece.gap:
            self._decoders[piece.stream].reset()
        return self._decoders[piece.stream].decode(piece.data)

    def _position(self, stream: StreamName) -> int:
        pending, _flags = self._decoders[stream].getstate()
        return self._read[stream] - len(pending)


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")
