"""Submit, wait, read, stop: everything that can be done with an execution."""

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from pyexec.domain.cursors import Cursor
from pyexec.domain.errors import InvalidArgumentError, NotFoundError, PyexecError
from pyexec.domain.executions import Execution, ExecutionRequest, State
from pyexec.domain.limits import ExecutionLimits
from pyexec.domain.principals import Principal
from pyexec.domain.progress import Progress
from pyexec.domain.text import legible
from pyexec.domain.turns import Turn
from pyexec.environments.orders import Answer, read_answer
from pyexec.executions.observing import ExecutionObserver
from pyexec.executions.recovery import ID_BYTES
from pyexec.executions.settling import Settler
from pyexec.executions.submission import Submitter
from pyexec.executions.submitted import CellReading, Reading, Submitted, silent
from pyexec.executions.waiting import standing_in_line
from pyexec.observability.requests import note_execution
from pyexec.sandbox.keepers import KeeperConnection, StopMode, connect
from pyexec.sandbox.observations import as_told
from pyexec.sandbox.turns import read_turn
from pyexec.storage.artifacts import LONGEST_NAME, Artifact, list_artifacts, read_artifact
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.follow import LogFollower, Piece
from pyexec.storage.output import count_events, read_output, read_preparation
from pyexec.storage.progress import read_progress
from pyexec.storage.returned import read_returned
from pyexec.storage.state_folder import StateFolder

SHORTEST_ID = 4
PAUSE_SECONDS = 0.02
STOP_SECONDS = 15.0

Watcher = Callable[[str], None]
Found = TypeVar("Found")


class ExecutionService:
    """The one way to run something and to look after it. Every call is made for a principal and sees only theirs."""

    def __init__(
        self,
        *,
        folder: StateFolder,
        store: ExecutionStore,
        settler: Settler,
        submitter: Submitter,
        limits: ExecutionLimits,
        observer: ExecutionObserver | None = None,
    ) -> None:
        self._observer = observer
        self._folder = folder
        self._store = store
        self._settler = settler
        self._submitter = submitter
        self._limits = limits

    async def submit(self, principal: Principal, request: ExecutionRequest) -> Execution:
        """See `Submitter.submit`."""
        with closing(await self.submit_to_wait(principal, request)) as submitted:
            await submitted.noted()
            return submitted.execution

    async def submit_to_wait(self, principal: Principal, request: ExecutionRequest) -> Submitted:
        """Do the same for who goes on to wait for it here; see `wait_for_submitted`.

        What has ended by then may be just being written down: see `Submitted.noted`.
        """
        try:
            submitted = await self._submitter.submit(principal, request)
        except PyexecError as error:
            if self._observer is not None:
                await run_sync(self._observer.refused, principal, request, error.code)
            raise
        try:
            note_execution(submitted.execution.id)
            ended = submitted.keeper.said("ended") if submitted.keeper else None
            if ended is not None:
                self._settler.note_begun(submitted.execution)
                self._take_end(submitted, ended)
        except BaseException:
            submitted.close()
            raise
        return submitted

    async def get(self, principal: Principal, execution_id: str) -> Execution:
        """Return an execution as it stands now.

        Raises:
            NotFoundError: This principal has no such execution.
        """
        return await self._observed(await self._require(principal, execution_id))

    async def wait(
        self, principal: Principal, execution_id: str, seconds: float | None, watcher: Watcher | None = None
    ) -> Execution:
        """Wait until an execution has ended, at most so long (None: for ever); return it as it stands then.

        `watcher` hears `output` when there is more to read, and the name of each step.
        """
        return await self.wait_for(await self.get(principal, execution_id), seconds, watcher)

    async def wait_for(self, execution: Execution, seconds: float | None, watcher: Watcher | None = None) -> Execution:
        """Do the same for an execution as it was last seen."""
        with closing(Submitted(execution)) as submitted:
            return await self.wait_for_submitted(submitted, seconds, watcher)

    async def wait_for_submitted(
        self, submitted: Submitted, seconds: float | None, watcher: Watcher | None = None
    ) -> Execution:
        """Do the same for one that was submitted here, whose keeper says of itself when it has ended."""
        with anyio.move_on_after(seconds):
            while not submitted.execution.ended:
                await self._hear(submitted, watcher)
        submitted.execution = await self._observed(submitted.execution)
        return submitted.execution

    async def _hear(self, submitted: Submitted, watcher: Watcher | None) -> None:
        """Listen to an execution's keeper until it falls silent."""
        execution = submitted.execution
        if submitted.keeper is None:
            async with connect(self._folder.execution(execution.id)) as keeper:
                told = None if keeper is None else await _heard(keeper, watcher)
        else:
            told = await _heard(submitted.keeper, watcher)
            submitted.close()
        if self._take_end(submitted, told):
            return
        submitted.execution = await run_sync(self._settler.settle_soon, execution)
        if not submitted.execution.ended:  # The keeper is coming or going: its traces settle in a moment.
            await anyio.sleep(PAUSE_SECONDS)

    def _take_end(self, submitted: Submitted, told: Mapping[str, Any] | None) -> bool:
        """Take over what a keeper has said of the end; tell whether that says it all."""
        observation = None if told is None else as_told(told)
        if observation is None or not observation.is_plain:
            return False
        submitted.ended = told
        submitted.execution = self._settler.settle_told(submitted.execution, observation)
        return True

    async def follow(self, principal: Principal, execution_id: str, *, to_end: bool = True) -> AsyncIterator[Piece]:
        """Yield what an execution has printed so far, as raw bytes; and `to_end` what it prints until it has ended.

        Raises:
            NotFoundError: This principal has no such execution.
        """
        execution = await self.get(principal, execution_id)
        folder = await self.folder_of(execution)
        follower = LogFollower(folder)
        while True:
            ended = execution.ended  # Asked before reading: what is written up to an end is read after it.
            async for piece in _in_thread(follower.new()):
                yield piece
            if ended or not to_end:
                return
            async with connect(folder) as keeper:
                while keeper is not None and await keeper.next() is not None:
                    async for piece in _in_thread(follower.new()):
                        yield piece
            execution = await self._observed(execution)
            if not execution.ended:
                await anyio.sleep(PAUSE_SECONDS)

    async def resolve(self, principal: Principal, text: str) -> str:
        """Return the full id that a unique beginning of it (at least four characters) means.

        Raises:
            NotFoundError: None, or more than one, begins so.
        """
        if len(text) == 2 * ID_BYTES:
            return text
        found = await run_sync(self._store.ids_like, principal.key, text) if len(text) >= SHORTEST_ID else []
        if len(found) != 1:
            which = f"{len(found)} jobs begin" if found else "No job begins"
            raise NotFoundError(f"{which} with {text[:64]!r}.", hint="`pyexec jobs list` shows the ids.")
        return found[0]

    def output_budget(self, max_bytes: int | None) -> int:
        """Return how much output an answer may carry when the caller asks for so much (None: the default).

        Raises:
            InvalidArgumentError: The caller asks for too little or too much.
        """
        budget = self._limits.answer_output if max_bytes is None else max_bytes
        if not 1 <= budget <= self._limits.answer_output_ceiling:
            raise InvalidArgumentError(
                f"max_output_bytes is {budget}; it must be between 1 and {self._limits.answer_output_ceiling}.",
                hint="Read on from next_cursor for the rest.",
            )
        return budget

    async def read(
        self, principal: Principal, execution_id: str, *, since: Cursor | None = None, max_bytes: int | None = None
    ) -> Reading:
        """Return an execution and its output from a cursor on (None: head and tail of all of it).

        Raises:
            NotFoundError: This principal has no such execution.
            InvalidArgumentError: `max_bytes` is not allowed.
        """
        budget = self.output_budget(max_bytes)
        execution = await self.get(principal, execution_id)
        reader = partial(read_output, since=since, max_bytes=budget, final=execution.ended)
        return Reading(execution=execution, output=await self._look(execution, reader))

    async def result_of(self, execution: Execution, max_bytes: int | None) -> tuple[Reading, Answer]:
        """Return the output of an execution, as it was last seen, and what it runs in.

        Raises:
            InvalidArgumentError: `max_bytes` is not allowed.
        """
        return await run_sync(self._result, execution, self.output_budget(max_bytes))

    async def cell_of(self, submitted: Submitted, max_bytes: int | None) -> CellReading:
        """Return what there is to be told of an execution, as it was last seen, that was a turn of a guest.

        What its keeper has told may be just being written down: see `Submitted.noted`.

        Raises:
            InvalidArgumentError: `max_bytes` is not allowed.
        """
        budget = self.output_budget(max_bytes)
        told = submitted.cell(budget)
        if told is None:
            await submitted.noted()
        return told or await run_sync(self._cell, submitted.execution, budget)

    def as_submitted(self, execution: Execution) -> Reading:
        """Return an execution that nobody waited for as it was handed over: nothing has been read of it yet."""
        return silent(execution)

    async def newest(
        self, principal: Principal, *, states: Collection[State] | None, limit: int
    ) -> tuple[list[Execution], int]:
        """Return the newest executions in these states (None: any), and how many there are altogether."""
        return await run_sync(self._newest, principal.key, states, limit)

    async def last_runs(self, principal: Principal, scripts: Sequence[Path]) -> dict[Path, Execution]:
        """Return the latest execution of each of these files, as far as it is still known."""
        return await run_sync(self._last_runs, principal.key, scripts)

    async def those(self, principal: Principal, execution_ids: Sequence[str]) -> dict[str, Execution]:
        """Return these executions, as far as this principal has them; at most some hundred at once."""
        return await run_sync(self._those, principal.key, execution_ids)

    async def active(self, principal: Principal) -> list[Execution]:
        """Return what runs or waits, oldest first."""
        settled = await run_sync(self._settler.settle_active, principal.key)
        return [execution for execution in settled if not execution.ended]

    async def stop(self, principal: Principal, execution_id: str, mode: StopMode, reason: str) -> Execution:
        """End an execution: `cancel` interrupts, then asks, then kills; `kill` kills at once. Ended ones stay ended.

        Returns when its processes are gone.
        """
        execution = await self.get(principal, execution_id)
        with anyio.move_on_after(STOP_SECONDS):
            while not execution.ended:
                async with connect(self._folder.execution(execution_id)) as keeper:
                    if keeper is not None:
                        with suppress(OSError):
                            keeper.stop(mode, reason)
                        while await keeper.next() is not None:
                            continue
                execution = await self._observed(execution)
                if not execution.ended:
                    await anyio.sleep(PAUSE_SECONDS)
        return execution

    async def environment_of(self, execution: Execution) -> Answer:
        """Return what an execution runs in, as far as that is known by now."""
        return await self._look(execution, read_answer)

    async def preparing(self, execution: Execution) -> str | None:
        """Return what a pending execution waits for, or what is being done so that it can start; None for nothing."""
        if (queued := await standing_in_line(self._folder.execution(execution.id))) is not None:
            return queued
        text = await self._look(execution, read_preparation)
        return text.rstrip("\n").rpartition("\n")[2] or None

    async def progress_of(self, execution: Execution) -> Progress | None:
        """Return how far an execution is, or was when it ended; None for one that does not say."""
        return await run_sync(self._progress_of, execution)

    async def progress_of_active(self, executions: Collection[Execution]) -> dict[str, Progress]:
        """Return how far those of them are that have not ended and say so, by id."""
        return await run_sync(self._progress_of_active, executions)

    async def returned_by(self, execution: Execution) -> Any:
        """Return what work inside a server returned; None where it has not, or for any other execution."""
        if execution.outcome is None or execution.outcome.kind != "returned":
            return None
        return await self._look(execution, read_returned)

    async def count_chunks(self, execution: Execution) -> dict[str, int]:
        """Return how many times each stream was written to, coalesced as the log has it."""
        return await self._look(execution, count_events)

    async def turn_of(self, execution: Execution) -> Turn | None:
        """Return what a guest said while it ran an execution; None for one that was no turn of a guest."""
        return await self._look(execution, read_turn)

    async def artifacts(self, principal: Principal, execution_id: str) -> tuple[Artifact, ...]:
        """Return the files that a tool of ours left for an execution.

        Raises:
            NotFoundError: This principal has no such execution.
        """
        execution = await self._require(principal, execution_id)
        return await self._look(execution, list_artifacts)

    async def read_artifact(self, principal: Principal, execution_id: str, name: str) -> bytes:
        """Return the content of one of them.

        Raises:
            NotFoundError: This principal has no such execution, or it has no such file, or one that is too large.
        """
        execution = await self._require(principal, execution_id)
        most = self._limits.artifact
        content = await self._look(execution, partial(read_artifact, name=name, most=most))
        if content is None:
            raise NotFoundError(
                f"Job {execution.id} has no file {name[:LONGEST_NAME]!r} of at most {most // 2**20} MB.",
                hint="The job's result names those there are.",
            )
        return content

    async def folder_of(self, execution: Execution) -> Path:
        """Return where an execution's files lie."""
        return await run_sync(self._folder.unpacked, execution.id)

    async def _look(self, execution: Execution, look: Callable[[Path], Found]) -> Found:
        """Look into an execution's folder, off the event loop."""
        return await run_sync(lambda: look(self._folder.unpacked(execution.id)))

    def _progress_of(self, execution: Execution) -> Progress | None:
        return read_progress(self._folder.unpacked(execution.id), final=execution.ended)

    def _progress_of_active(self, executions: Collection[Execution]) -> dict[str, Progress]:
        started = [one for one in executions if not one.ended and one.started_at is not None]
        return {one.id: progress for one in started if (progress := self._progress_of(one)) is not None}

    def _result(self, execution: Execution, budget: int) -> tuple[Reading, Answer]:
        folder = self._folder.unpacked(execution.id)
        output = read_output(folder, since=None, max_bytes=budget, final=execution.ended)
        return Reading(execution=execution, output=output), read_answer(folder)

    def _cell(self, execution: Execution, budget: int) -> CellReading:
        folder = self._folder.unpacked(execution.id)
        reading, environment = self._result(execution, budget)
        turn = read_turn(folder)
        return CellReading(reading=reading, environment=environment, turn=turn, artifacts=list_artifacts(folder))

    def _last_runs(self, owner: str, scripts: Sequence[Path]) -> dict[Path, Execution]:
        by_source = {legible(str(path)): path for path in scripts}
        found = self._store.latest_of(owner, list(by_source))
        return {by_source[source]: self._settled(one) for source, one in found.items()}

    def _those(self, owner: str, execution_ids: Sequence[str]) -> dict[str, Execution]:
        return {one.id: self._settled(one) for one in self._store.those(owner, execution_ids)}

    def _settled(self, execution: Execution) -> Execution:
        return execution if execution.ended else self._settler.settle(execution)

    def _newest(self, owner: str, states: Collection[State] | None, limit: int) -> tuple[list[Execution], int]:
        settled = {one.id: one for one in self._settler.settle_active(owner)}
        stored, total = self._store.page(owner, states=states, limit=limit)
        # On a full disk the index lags behind; what was seen counts.
        found = [settled.get(one.id, one) for one in stored]
        return [one for one in found if states is None or one.state in states], total

    # -- observing -------------------------------------------------------------------------------------------------

    async def _require(self, principal: Principal, execution_id: str) -> Execution:
        execution = await run_sync(self._settler.find, principal.key, execution_id)
        if execution is None:
            raise NotFoundError(
                f"There is no job {execution_id[:64]!r}.",
                hint="py_list_jobs lists those there are; old ones are removed.",
            )
        return execution

    async def _observed(self, execution: Execution) -> Execution:
        return execution if execution.ended else await run_sync(self._settler.settle, execution)


async def _heard(keeper: KeeperConnection, watcher: Watcher | None) -> Mapping[str, Any] | None:
    """Return what a keeper says of the end; None if it ends without a word."""
    while (message := await keeper.next()) is not None:
        if message.get("t") == "ended":
            return message
        if watcher is not None:
            watcher(str(message.get("phase") or message.get("t")))
    return None


async def _in_thread(pieces: Iterator[Piece]) -> AsyncIterator[Piece]:
    """Take pieces from the disk one by one, off the event loop."""
    while (piece := await run_sync(next, pieces, None)) is not None:
        yield piece
