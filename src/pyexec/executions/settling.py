"""Bringing records up to date with what the executions' folders say."""

import time
from contextlib import suppress
from dataclasses import replace

from pyexec.domain.errors import DiskFullError
from pyexec.domain.executions import Execution, Outcome
from pyexec.environments.orders import read_answer
from pyexec.executions.harnesses import companion_folders
from pyexec.executions.observing import ExecutionObserver
from pyexec.sandbox.losses import settle_loss
from pyexec.sandbox.observations import Observation, observe
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.state_folder import StateFolder

FOLDER_GONE = "Its folder was removed from the state folder, and its output with it."


class Settler:
    """Looks at folders, which are the truth, and writes what has changed into the index. Blocks on the disk."""

    def __init__(self, folder: StateFolder, store: ExecutionStore, observer: ExecutionObserver | None = None) -> None:
        self._folder = folder
        self._store = store
        self._observer = observer

    def settle_active(self, owner: str) -> list[Execution]:
        """Settle all that was not known to have ended; return it as it stands now, oldest first."""
        return [self.settle(known) for known in self._store.active(owner)]

    def settle_all(self) -> None:
        """Settle what everybody has running, for who watches over ends that nobody waits for."""
        for owner in self._store.owners_of_active():
            self.settle_active(owner)

    def settle(self, execution: Execution) -> Execution:
        """Return an execution as it stands now. One whose keeper is gone without an outcome becomes `lost`."""
        observed = self._explained(_apply(execution, self._observe(execution)))
        with suppress(DiskFullError):  # The folder says it all; the index follows when there is room again.
            if observed.ended:
                if self._store.finish(observed) and self._observer is not None:
                    self._observer.ended(observed)
            elif observed.state != execution.state:
                self._store.mark_running(observed)
        return observed

    def _observe(self, execution: Execution) -> Observation:
        folder = self._folder.execution(execution.id)
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
    started = observation.started
    if started is not None:
        execution = replace(execution, started_at=started.started_at, pid=started.pid)
    if observation.outcome is not None:
        return replace(execution, state=observation.outcome.state, outcome=observation.outcome)
    return replace(execution, state="running") if observation.phase == "running" else execution
