"""A state folder with records and folders in it, without keepers."""

import time
from typing import Any

from pyexec.domain.executions import Execution, Outcome, State
from pyexec.domain.limits import ExecutionLimits
from pyexec.domain.principals import Principal
from pyexec.executions.afterwards import Afterwards
from pyexec.executions.recovery import Recovery
from pyexec.executions.retention import Retention
from pyexec.executions.settling import Settler
from pyexec.sandbox.claims import Claim, claim
from pyexec.scripts.autosaved import AutosavedScripts
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.presence import Presence
from pyexec.storage.state_folder import StateFolder
from tests.helpers.databases import Place
from tests.helpers.records import execution, exited

HOUR = 3600.0
OWNER = Principal(issuer="local", subject="1000")
OTHER = Principal(issuer="local", subject="1001")


class World:
    """A state folder with executions that have ended, more or less long ago."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.folder = StateFolder(place.root)
        self.folder.create()
        self.database = place.open()
        self.store = ExecutionStore(self.database)
        self.autosaved = AutosavedScripts(self.folder, most=10)
        self.recovery = Recovery(self.folder, self.store, Presence(self.folder.servers))
        self._number = 0
        self.held: list[Claim] = []

    def retention(self, **limits: Any) -> Retention:
        settler = Settler(self.folder, self.store, Afterwards(), self.recovery)
        return Retention(self.folder, self.store, settler, self.recovery, self.autosaved, ExecutionLimits(**limits))

    def add(
        self, state: State = "completed", *, hours_ago: float = 1, size: int = 10, owner: Principal = OWNER
    ) -> Execution:
        self._number += 1
        ended_at = time.time() - hours_ago * HOUR
        outcomes: dict[State, Outcome | None] = {
            "pending": None,
            "running": None,
            "completed": exited(0, ended_at),
            "failed": exited(1, ended_at),
        }
        outcome = outcomes[state] if state in outcomes else Outcome(kind=state, ended_at=ended_at)  # pyright: ignore[reportArgumentType]
        record = execution(self._number, owner=owner.key, state=state, outcome=outcome, created_at=ended_at - 5)
        folder = self.folder.execution(record.id)
        folder.mkdir()
        (folder / "stdout").write_bytes(b"x" * size)
        if outcome is None:
            self.held.append(claim(folder, self.folder.queue(owner.key), record.id))
        self.store.add(record)
        return record

    def left(self) -> list[Execution]:
        """What is left, and check that records and folders say the same."""
        found = [record for owner in self.store.owners() for record in self.store.page(owner, states=None, limit=99)[0]]
        assert {folder.name for folder in self.folder.executions.iterdir()} == {record.id for record in found}
        return sorted(found, key=lambda record: record.id)
