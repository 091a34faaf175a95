"""What sessions have run: the executions in them, as cells."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyexec.domain.executions import Execution
from pyexec.domain.principals import Principal
from pyexec.domain.turns import Turn
from pyexec.environments.store import EnvironmentStore
from pyexec.executions.placing import CODE
from pyexec.executions.settling import Settler
from pyexec.sandbox.turns import read_turn
from pyexec.sessions.cells import Cell, SessionEnvironment
from pyexec.sessions.directory import SessionDirectory
from pyexec.storage.artifacts import read_artifact
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.output import read_output
from pyexec.storage.state_folder import StateFolder

MOST_CELLS = 1000
OUTPUT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionsOfSessions:
    """Knows what sessions have run in their present, or last, life; see `SessionHistory`. Methods block on the disk."""

    folder: StateFolder
    store: ExecutionStore
    settler: Settler
    directory: SessionDirectory
    environments: EnvironmentStore
    artifact: int

    def cells(self, principal: Principal, session_id: str) -> list[Cell]:
        """See `SessionHistory.cells`; the latest thousand."""
        session = self.directory.find(principal.key, session_id).session
        self.settler.catch_up()  # All at once costs less than one by one.
        records = self.store.in_session(principal.key, session.id, session.created_at, MOST_CELLS)
        settled = [one if one.ended else self.settler.settle(one) for one in records]
        began = session.started_at or 0.0
        return [
            self._cell(number, one)
            for number, one in enumerate((one for one in settled if (one.started_at or 0.0) >= began > 0), 1)
        ]

    def environment(self, principal: Principal, session_id: str) -> SessionEnvironment:
        """See `SessionHistory.environment`."""
        session = self.directory.find(principal.key, session_id).session
        digest = Path(session.prefix).name if session.prefix is not None else ""
        made = self.environments.get(digest) if digest else None
        return SessionEnvironment(
            python_version=made.python_version if made is not None else "",
            lock=(self.environments.lock_text(digest) if digest else None) or "",
        )

    def _cell(self, number: int, execution: Execution) -> Cell:
        folder = self.folder.unpacked(execution.id)
        try:
            code = (folder / CODE).read_text("utf-8", "replace")
        except OSError:
            code = "# The source of this cell is not kept any more."
        turn = read_turn(folder)
        output = read_output(folder, since=None, max_bytes=OUTPUT_BYTES, final=execution.ended)
        files = {
            name: content
            for name in _files_of(turn)
            if (content := read_artifact(folder, name, self.artifact)) is not None
        }
        return Cell(
            code=code,
            execution_count=number,
            stdout=output.stdout.text,
            stderr=output.stderr.text,
            turn=turn,
            files=files,
        )


def _files_of(turn: Turn | None) -> Iterator[str]:
    for display in turn.displays if turn is not None else ():
        yield from (part.file for part in display.parts if part.file is not None)
