"""What a session has on this machine: the sandbox it lives in, and the folders that stay when that has ended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyexec.storage.sessions import SessionFolder
from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.folders import PACKAGES, Folder
from pyexec.walls.bubblewrap.turnstile import Admission
from pyexec.walls.bubblewrap.workspaces import Workspace, Workspaces

MakeBox = Callable[[Path, Sequence[Folder], Admission], Box]
"""Takes the folder of an environment and the folders of this machine; returns a sandbox, after a while."""


@dataclass(frozen=True, slots=True)
class Home:
    """A sandbox, and the workspace that it has."""

    box: Box
    workspace: Workspace

    def close(self) -> None:
        """End the sandbox and let go of the workspace. Blocks for some milliseconds."""
        self.box.close()
        self.workspace.close()


class Homes:
    """Makes homes for sessions. Methods block.

    Args:
        workspaces: Makes workspaces.
        size: How many bytes of files one holds.
        make_box: See `MakeBox`.
        give: Sees that a folder belongs to a user of sandboxes.
    """

    def __init__(self, workspaces: Workspaces, size: int, make_box: MakeBox, give: Callable[[int], None]) -> None:
        self._give = give
        self._workspaces = workspaces
        self._size = size
        self._make_box = make_box

    def make(self, folder: SessionFolder, prefix: Path, shared: Sequence[Folder], room: Admission) -> Home:
        """Return a home for a session, with the workspace that it had before, if it had one, and with shared folders.

        Raises:
            PyexecError: There is none; see `Families.sandbox` and `Workspaces.open`.
        """
        packages = folder.packages
        packages.mkdir(mode=0o755, exist_ok=True)
        packages.chmod(0o755)  # Whatever the umask: the users of sandboxes read it.
        workspace = self.workspace(folder)
        try:
            with workspace.opened() as inside:
                box = self._make_box(prefix, [inside, Folder(place=PACKAGES, source=packages), *shared], room)
            try:
                workspace.watch(box)
            except BaseException:
                box.close()
                raise
        except BaseException:
            workspace.close()
            raise
        return Home(box, workspace)

    def workspace(self, folder: SessionFolder) -> Workspace:
        """Return the workspace of a session, whose sandbox must have ended; who has it must `close` it.

        Raises:
            PyexecError: It cannot be had; see `Workspaces.open`.
        """
        workspace = self._workspaces.open(folder.path, self._size)
        try:
            self._give(workspace.root)
        except BaseException:
            workspace.close()
            raise
        return workspace
