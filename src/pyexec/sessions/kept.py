"""The workspaces of sessions, which the keeper of their sandboxes has, and hands out by their roots."""

import os
from pathlib import Path

from pyexec.domain.principals import Principal
from pyexec.sandbox.ports import SessionKeeper
from pyexec.sessions.directory import SessionDirectory
from pyexec.sessions.workspaces import WorkspaceFolder


class KeptWorkspaces:
    """Opens workspaces; see `Workspaces`."""

    def __init__(self, directory: SessionDirectory, keeper: SessionKeeper) -> None:
        self._directory = directory
        self._keeper = keeper

    def open(self, principal: Principal, session_id: str) -> WorkspaceFolder:
        """See `Workspaces.open`.

        Raises:
            NotFoundError: This principal has no such session.
            PyexecError: It cannot be had; see `SessionKeeper.open_workspace`.
        """
        found = self._directory.find(principal.key, session_id)
        keeper = found.session.keeper
        got = self._keeper.open_workspace(found.folder.path, None if keeper is None else Path(keeper))
        try:
            # What came is good for a path only; this can be listed as well.
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=got.fd)
            return WorkspaceFolder(fd=fd, room=got.room, used=got.used, allowed=got.allowed)
        finally:
            os.close(got.fd)
