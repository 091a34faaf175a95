"""Where there are no sessions."""

from collections.abc import Sequence
from typing import NoReturn

from pyexec.domain.errors import NotFoundError
from pyexec.domain.principals import Principal
from pyexec.sessions.cells import Cell, SessionEnvironment
from pyexec.sessions.workspaces import WorkspaceFolder


class NoSessions:
    """Workspaces and history of no session at all."""

    def open(self, principal: Principal, session_id: str) -> WorkspaceFolder:
        """Refuse."""
        del principal
        _refuse(session_id)

    def cells(self, principal: Principal, session_id: str) -> Sequence[Cell]:
        """Refuse."""
        del principal
        _refuse(session_id)

    def environment(self, principal: Principal, session_id: str) -> SessionEnvironment:
        """Refuse."""
        del principal
        _refuse(session_id)


def _refuse(session_id: str) -> NoReturn:
    raise NotFoundError(f"There is no session {session_id[:80]!r}.")
