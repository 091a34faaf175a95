"""What an execution's folder says: the truth that every record follows."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pyexec.domain.executions import OUTCOME_KINDS, Outcome, Process
from pyexec.sandbox.claims import is_held

Phase = Literal["pending", "running", "ended", "lost"]
_MAX_JSON_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What the keeper noted when the program began; enough to find what it started.

    `inside` says that it is no program but work of the server with this pid.
    """

    boot: str
    pid: int
    start_ticks: int
    started_at: float
    group: str | None
    pipes: tuple[int, ...]
    inside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """How an execution stands. `outcome` is there when it ended."""

    phase: Phase
    started: Started | None = None
    outcome: Outcome | None = None

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing in the folder that would say more about the end."""
        return self.outcome is not None and self.outcome.kind != "environment_failed"


def observe(folder: Path) -> Observation:
    """Look at an execution's folder."""
    outcome = _read_outcome(folder)
    if outcome is None:
        held = is_held(folder)
        outcome = _read_outcome(folder)  # It may have ended between the two looks.
        if outcome is None:
            started = _read_started(folder)
            if not held:
                return Observation(phase="lost", started=started)
            return Observation(phase="running" if started else "pending", started=started)
    return Observation(phase="ended", started=_read_started(folder), outcome=outcome)


def as_told(ended: Mapping[str, Any]) -> Observation | None:
    """Return what a keeper says to those who wait when it has written the outcome; None where that makes no sense."""
    outcome, started = ended.get("outcome"), ended.get("started")
    if not isinstance(outcome, dict):
        return None
    read = _outcome_of(cast("dict[str, Any]", outcome))
    begun = _started_of(cast("dict[str, Any]", started)) if isinstance(started, dict) else None
    return None if read is None else Observation(phase="ended", started=begun, outcome=read)


def _read_outcome(folder: Path) -> Outcome | None:
    return _outcome_of(_read_json(folder / "outcome.json"))


def _outcome_of(values: Mapping[str, Any] | None) -> Outcome | None:
    if values is None or values.get("kind") not in OUTCOME_KINDS:
        return None
    try:
        return Outcome(
            kind=values["kind"],
            exit_code=values.get("exit_code"),
            signal=values.get("signal"),
            stopped_by=values.get("stopped_by"),
            reason=values.get("reason"),
            started_at=values.get("started_at"),
            ended_at=float(values["ended_at"]),
            user_cpu_seconds=float(values.get("user_cpu_seconds", 0)),
            system_cpu_seconds=float(values.get("system_cpu_seconds", 0)),
            peak_rss_bytes=int(values.get("peak_rss_bytes", 0)),
            stdout_bytes=int(values.get("stdout_bytes", 0)),
            stderr_bytes=int(values.get("stderr_bytes", 0)),
            leftover_processes=tuple(
                Process(pid=int(left["pid"]), command=str(left["command"]))
                for left in values.get("leftover_processes", ())
            ),
        )
    except (KeyError, OverflowError, TypeError, ValueError):
        return None


def _read_started(folder: Path) -> Started | None:
    return _started_of(_read_json(folder / "started.json"))


def _started_of(values: Mapping[str, Any] | None) -> Started | None:
    if values is None:
        return None
    try:
        return Started(
            boot=str(values["boot"]),
            pid=int(values["pid"]),
            start_ticks=int(values["start_ticks"]),
            started_at=float(values["started_at"]),
            group=values["group"],
            pipes=tuple(int(inode) for inode in values["pipes"]),
            inside=values.get("inside") is True,
        )
    except (KeyError, OverflowError, TypeError, ValueError):
        return None


def _read_json(path: Path) -> Mapping[str, Any] | None:
    try:
        with open(path, "rb") as file:
            values = json.loads(file.read(_MAX_JSON_BYTES))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", values) if isinstance(values, dict) else None
