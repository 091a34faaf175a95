"""An execution and what its keeper still says to the process that has submitted it."""

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pyexec.domain.executions import Execution, StreamName
from pyexec.domain.turns import Turn
from pyexec.environments.orders import Answer
from pyexec.sandbox.keepers import KeeperConnection
from pyexec.sandbox.turns import turn_of
from pyexec.storage.artifacts import Artifact
from pyexec.storage.output import Output, show_output


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An execution and what it printed, as asked for."""

    execution: Execution
    output: Output


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReading:
    """An execution that was a turn of a guest: its output, what it ran in, what the guest said, the files it left."""

    reading: Reading
    environment: Answer
    turn: Turn | None
    artifacts: tuple[Artifact, ...]


def silent(execution: Execution) -> Reading:
    """Return the reading of an execution that has printed nothing."""
    return Reading(execution=execution, output=show_output(b"", b"", max_bytes=1))


class Submitted:
    """One of those. Whoever has it closes it.

    Attributes:
        execution: As it was last seen.
        keeper: The conversation with its keeper, as long as that is open.
        environment: What it runs in, where that is known to this process.
        ended: What the keeper said when it had ended.
    """

    def __init__(
        self, execution: Execution, keeper: KeeperConnection | None = None, environment: Answer | None = None
    ) -> None:
        self.execution = execution
        self.keeper = keeper
        self.environment = environment
        self.ended: Mapping[str, Any] | None = None
        self._meanwhile: asyncio.Future[None] | None = None

    def do_meanwhile(self, work: Callable[[], None]) -> None:
        """Begin something on a thread; it is done to its end, and `noted` waits for it."""
        # With its context: what is traced belongs to the call.
        self._meanwhile = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work)

    async def noted(self) -> bool:
        """Wait until all is written down, where its keeper has told its end before that.

        To be done before anybody is told its id. Its notes say where it could not be, or its session has ended with it.
        Tells whether they do.
        """
        if self._meanwhile is not None:
            await asyncio.shield(self._meanwhile)
            self._meanwhile = None
        if self.keeper is None or not (self.ended or {}).get("noting"):
            return False
        said = await self.keeper.noted()
        self.close()
        note = said.get("told")
        if said.get("t") == "failed":
            note = f"What it printed is kept nowhere: the state folder cannot be written ({said.get('why')})."
        if note is not None:
            self.execution = replace(self.execution, notes=(*self.execution.notes, str(note)))
        return note is not None

    @property
    def was_silent(self) -> bool:
        """Whether it is known to have ended without having printed anything."""
        return self._frames is not None and not self._printed("stdout") and not self._printed("stderr")

    def cell(self, max_bytes: int) -> CellReading | None:
        """Return what its keeper has said of it, if that is all there is of a turn of a guest."""
        frames = self._frames
        if self.environment is None or frames is None:
            return None
        output = show_output(self._printed("stdout"), self._printed("stderr"), max_bytes=max_bytes)
        reading = Reading(execution=self.execution, output=output)
        return CellReading(reading=reading, environment=self.environment, turn=turn_of(frames), artifacts=())

    @property
    def _frames(self) -> list[dict[str, Any]] | None:
        """What the guest has said, where the keeper has told all of it and of what was printed."""
        frames = (self.ended or {}).get("frames")
        return cast("list[dict[str, Any]]", frames) if isinstance(frames, list) else None

    def _printed(self, stream: StreamName) -> bytes:
        text = (self.ended or {}).get(stream)
        return text.encode("latin-1") if isinstance(text, str) else b""

    def close(self) -> None:
        """Hang up; the execution goes on."""
        if self.keeper is not None:
            self.keeper.close()
            self.keeper = None
