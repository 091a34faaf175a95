"""Bringing records up to date with what the executions' folders say."""

import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyexec.domain.errors import DiskFullError, RecordsUnavailableError
from pyexec.domain.executions import Execution, Outcome
from pyexec.environments.orders import read_answer
from pyexec.executions.afterwards import Afterwards
from pyexec.executions.harnesses import companion_folders
from pyexec.executions.observing import ExecutionObserver
from pyexec.executions.recovery import Recovery, is_id
from pyexec.sandbox.losses import settle_loss
from pyexec.sandbox.observations import Observation, observe
from pyexec.storage.descriptors import read_descriptor
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.state_folder import StateFolder

MOST_MISSED = 1000
FOLDER_GONE = "Its folder was removed from the state folder, and its output with it."


class Settler:
    """Looks at folders, which are the truth, and writes what has changed into the index. Blocks on the disk."""

    def __init__(
        self,
        folder: StateFolder,
        store: ExecutionStore,
        afterwards: Afterwards,
        recovery: Recovery,
        observer: ExecutionObserver | None = None,
    ) -> None:
        self._folder = folder
        self._store = store
        self._afterwards = afterwards
        self._recovery = recovery
        self._observer = observer
        self._missed: list[Execution] = []  # Seen while the index was away; of the thread that notes things down.

    def settle_active(self, owner: str) -> list[Execution]:
        """Settle all that was not known to have ended; return it as it stands now, oldest first."""
        self.catch_up()  # All at once costs less than one by one.
        active = self._store.active(owner)
        if self._recovery.recover_in_line(owner, {execution.id for execution in active}):
            active = self._store.active(owner)
        return [self.settle(known) for known in active]

    def settle_all(self) -> None:
        """Settle what everybody has running, for who watches over ends that nobody waits for."""
        for owner in self._store.owners_of_active():
            self.settle_active(owner)

    def settle(self, execution: Execution) -> Execution:
        """Return an execution as it stands now. One whose keeper is gone without an outcome becomes `lost`."""
        observed = self._explained(_apply(execution, self._observe(execution)))
        self._note(execution, observed)
        return observed

    def settle_soon(self, execution: Execution) -> Execution:
        """Do the same, but for the index: where it has ended that follows in a moment, with nobody waiting for it."""
        observed = self._explained(_apply(execution, self._observe(execution)))
        if observed.ended:
            self._afterwards.gather(self._note_seen, observed)
        else:
            self._note(execution, observed)
        return observed

    def settle_told(self, execution: Execution, observation: Observation) -> Execution:
        """Do the same with what its keeper has said of its end. Does not block."""
        observed = _apply(execution, observation)
        self._afterwards.gather(self._note_seen, observed)
        return observed

    def note_begun(self, execution: Execution) -> None:
        """Note down soon what has a keeper. Does not block."""
        self._afterwards.gather(self._note_seen, execution)

    def find(self, owner: str, execution_id: str) -> Execution | None:
        """Return an execution of an owner as it was last noted down, or else as its folder says it was submitted."""
        found = self._store.get(owner, execution_id)
        if found is None and is_id(execution_id):
            self.catch_up()
            submitted = read_descriptor(self._folder.execution(execution_id))
            if submitted is not None and submitted.owner == owner:
                self._store.add_missing([submitted])
            found = self._store.get(owner, execution_id)
        return found

    def catch_up(self) -> None:
        """Wait until the index says all that has been seen here, and what servers left that were killed."""
        self._afterwards.catch_up()
        self._recovery.recover_of_killed()

    def _note(self, known: Execution, observed: Execution) -> None:
        # The folder says it all; the index follows when there is room again, or the database is back.
        with suppress(DiskFullError, RecordsUnavailableError):
            if observed.ended:
                if self._store.finish(observed) and self._observer is not None:
                    self._observer.ended(observed)
            elif observed.state != known.state:
                self._store.mark_running(observed)

    def _note_seen(self, seen: list[Execution]) -> None:
        """Note down what has begun, and what has ended."""
        seen, self._missed = [*self._missed, *seen], []
        begun = {one.id: one for one in seen if not one.ended}
        ended = [one for one in seen if one.ended]
        at_once = [one for one in ended if begun.pop(one.id, None) is not None]
        known = {one.id for one in at_once}
        try:
            if begun:
                self._store.add_missing(list(begun.values()))
            first = self._store.add_finished(at_once) if at_once else []
            if others := [one for one in ended if one.id not in known]:
                first += self._store.finish_many(others)
        except (DiskFullError, RecordsUnavailableError):
            self._missed = seen[-MOST_MISSED:]  # With the next ones; folders of what is lost here are found by a sweep.
            return
        if self._observer is not None:
            for execution in first:
                self._observer.ended(execution)

    def _observe(self, execution: Execution) -> Observation:
        folder = self._folder.unpacked(execution.id)
        observation = observe(folder)
        if observation.phase == "lost":
            observation = settle_loss(folder, execution.id)
            if observation.outcome is None and not folder.exists():
                gone = Outcome(kind="lost", reason=FOLDER_GONE, ended_at=time.time(), started_at=execution.started_at)
                return Observation(phase="ended", outcome=gone)
        return observation

    def _explained(self, execution: Execution) -> Execution:
        """Put one sentence in place of all that uv said when it could not make the environment."""
        outcome = execution.outcome
        if outcome is None or outcome.kind != "environment_failed":
            return execution
        folder = self._folder.execution(execution.id)
        for place in (folder, *companion_folders(folder)):
            answer = read_answer(place)
            if answer.failure is not None:
                said = replace(outcome, reason=answer.failure, detail=answer.failure_detail)
                return replace(execution, outcome=said)
        return execution


def _apply(execution: Execution, observation: Observation) -> Execution:
    started, outcome = observation.started, observation.outcome
    news: dict[str, Any] = {}
    if started is not None:
        news = {"started_at": started.started_at, "pid": started.pid}
    if outcome is not None:
        news |= {"state": outcome.state, "outcome": outcome}
    elif observation.phase == "running":
        news["state"] = "running"
    return replace(execution, **news) if news else execution
