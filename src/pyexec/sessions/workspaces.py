"""Where the workspaces of sessions are: what the files of sessions stand on."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from pyexec.domain.principals import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceFolder:
    """A workspace that is open.

    Attributes:
        fd: A descriptor of its root, of its own, by path only (`O_PATH`) or to be read.
        room: How many more bytes may be written, where the file system itself sets no bound; None where it does.
        used: How many bytes all workspaces of its owner hold.
        allowed: How many they may hold; None: any.
    """

    fd: int
    room: int | None = None
    used: int = 0
    allowed: int | None = None

    def close(self) -> None:
        """Let go of it."""
        os.close(self.fd)


class Workspaces(Protocol):
    """Opens workspaces. Methods block."""

    def open(self, principal: Principal, session_id: str) -> WorkspaceFolder:
        """Open the workspace of a session; it may be dead, as long as its files are kept.

        Raises:
            NotFoundError: There is no such session, or it belongs to somebody else.
        """
        ...


@contextmanager
def opened(workspaces: Workspaces, principal: Principal, session_id: str) -> Generator[WorkspaceFolder]:
    """Have a workspace open for a while.

    Raises:
        NotFoundError: There is no such session.
    """
    folder = workspaces.open(principal, session_id)
    try:
        yield folder
    finally:
        folder.close()
