"""Bringing records up to date with what the executions' folders say."""

import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from pyexec.domain.errors import DiskFullError
from pyexec.domain.executions import Execution, Outcome
from pyexec.environments.failures import explain
from pyexec.sandbox.losses import settle_loss
from pyexec.sandbox.observations import Observation, observe
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.state_folder import StateFolder

FOLDER_GONE = "Its folder was removed from the state folder, and its output with it."
_SIGNALS = {number.value: number.name for number in signal.Signals}


class Settler:
    """Looks at folders, which are the truth, and writes what has changed into the index. Blocks on the disk."""

    def __init__(self, folder: StateFolder, store: ExecutionStore, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._store = store
        self._environ = environ

    def settle_active(self, owner: str) -> list[Execution]:
        """Settle all that was not known to have ended; return it as it stands now, oldest first."""
        return [self.settle(known) for known in self._store.active(owner)]

    def settle(self, execution: Execution) -> Execution:
        """Return an execution as it stands now. One whose keeper is gone without an outcome becomes `lost`."""
        observed = self._explained(_apply(execution, self._observe(execution)))
        with suppress(DiskFullError):  # The folder says it all; the index follows when there is room again.
            if observed.ended:
                self._store.finish(observed)
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
        if outcome is None or outcome.kind != "environment_failed" or not outcome.reason:
            return execution
        failure = explain(outcome.reason, self._environ)
        return replace(execution, outcome=replace(outcome, reason=failure.message, detail=failure.detail))


def _apply(execution: Execution, observation: Observation) -> Execution:
    started = observation.started
    if started is not None:
        execution = replace(execution, started_at=started.started_at, pid=started.pid)
    if observation.outcome is not None:
        outcome = _seen_through_uv(observation.outcome) if execution.strategy == "uv-run" else observation.outcome
        return replace(execution, state=outcome.state, outcome=outcome)
    return replace(execution, state="running") if observation.phase == "running" else execution


def _seen_through_uv(outcome: Outcome) -> Outcome:
    """Return the outcome of the program itself: uv, between it and its keeper, says 128 + n where signal n ended it."""
    code = outcome.exit_code
    if code is None or outcome.signal is not None or code - 128 not in _SIGNALS:
        return outcome
    kind = "signalled" if outcome.kind == "exited" else outcome.kind
    return replace(outcome, kind=kind, signal=_SIGNALS[code - 128])
