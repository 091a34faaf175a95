"""The host wall: no wall at all. Code runs as the user who runs pyexec, with everything that user can reach."""

from dataclasses import replace

from pyexec.processes.launcher import Launcher
from pyexec.processes.strays import MARK
from pyexec.sandbox.handover import hand_over
from pyexec.sandbox.keepers import KeeperConnection
from pyexec.sandbox.ports import Launch


class HostWall:
    """Runs executions as plain processes of this user, each guarded by a keeper of its own."""

    name = "host"

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def launch(self, launch: Launch, lock_fd: int) -> KeeperConnection:
        """See `Wall.launch`. The environment carries a mark by which strays of a killed keeper are found."""
        mark = {MARK: launch.execution_id}
        prepare = tuple(replace(one, env={**one.env, **mark}) for one in launch.prepare)
        marked = replace(launch, env={**launch.env, **mark}, prepare=prepare)
        return hand_over(self._launcher, marked, lock_fd)

    def begin(self, launch: Launch, *, may_wait: bool) -> KeeperConnection | None:
        """See `Wall.begin`: each program is started anew, and that is what takes its time."""
        return None

    def close(self) -> None:
        """See `Wall.close`."""
        self._launcher.close()
