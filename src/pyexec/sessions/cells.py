"""What a session has run, cell by cell, and in what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyexec.domain.principals import Principal
from pyexec.domain.turns import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell and what came of it.

    Attributes:
        code: As it was sent.
        execution_count: Its number in the session; None where it has none.
        stdout, stderr: What is kept of its output.
        turn: What else is known of it; None where the interpreter never said anything.
        files: The contents of files that its displays lie in, by name; those that are missing are not kept any more.
    """

    code: str
    execution_count: int | None = None
    stdout: str = ""
    stderr: str = ""
    turn: Turn | None = None
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    @property
    def went_wrong(self) -> str | None:
        """How it ended, where it was not well, as the end of a sentence."""
        turn = self.turn
        if turn is None or turn.status is None:
            return "did not end"
        match turn.status:
            case "ok":
                return None
            case "interrupted":
                return "was interrupted"
            case "exited":
                return "left the interpreter"
            case "refused":
                return "was not run"
            case "error":
                return f"raised {turn.failure.type}" if turn.failure else "failed"

    @property
    def would_end(self) -> bool:
        """Whether it would come to an end by itself, well or not, if it were run again."""
        return self.turn is not None and self.turn.status in ("ok", "error", "exited")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnvironment:
    """What a session runs in: the version of Python, and its packages as a requirements file with hashes."""

    python_version: str
    lock: str


class SessionHistory(Protocol):
    """Knows what sessions have run. Methods block."""

    def cells(self, principal: Principal, session_id: str) -> Sequence[Cell]:
        """Return the cells of a session in the order in which they ran; of its present life.

        Raises:
            NotFoundError: There is no such session, or it belongs to somebody else.
        """
        ...

    def environment(self, principal: Principal, session_id: str) -> SessionEnvironment:
        """Return what it runs in.

        Raises:
            NotFoundError: There is no such session, or it belongs to somebody else.
        """
        ...
