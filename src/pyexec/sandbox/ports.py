"""What a wall is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pyexec.sandbox.keepers import KeeperConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparing:
    """A program to run before another; `env` and `stdin` are its own, and may hold secrets."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    stdin: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line to stand in: its folder, the place that has been taken (None: the last one, later), how many may run."""

    folder: Path
    entry: str | None
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFolder:
    """A folder of this machine that a sandbox can read: where it is inside, where it is here."""

    place: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything a keeper must know to run one execution. Durations are seconds; a timeout of 0 means none.

    `owner` is whose it is, where several have to share.
    Each of `prepare` is run first, and has `prepare_timeout`. One may leave `environment.json` in the execution's
    folder: with `python`, which takes its place in `argv` (`python_at`) and its folder the first of PATH, and with what
    else the log shall tell about the environment. With `guest` the program is the guest, and that is its one turn.
    `session` says by its `folder` which session the turn is in, `keeper` by its own which keeper has that already.
    `folders` are what its sandbox can read of this machine, where it is made for this execution. `usual` says that it
    runs on what sandboxes run on where nobody says otherwise.

    Where there is no folder yet whoever takes it over makes that, with the code of the turn in the file `code`; `room`
    is how many bytes the disk must have free for that.
    """

    execution_id: str
    owner: str
    folder: Path
    lines: tuple[Line, ...]
    session: Mapping[str, str] | None = None
    keeper: Path | None = None
    folders: tuple[SharedFolder, ...] = ()
    code: str | None = None
    room: int = 0
    usual: bool = False
    argv: tuple[str, ...]
    python_at: int = 0
    guest: Mapping[str, object] | None = None
    prepare: tuple[Preparing, ...] = ()
    prepare_timeout: float
    cwd: str
    env: Mapping[str, str] = field(repr=False)
    stdin: str | None = field(default=None, repr=False)
    timeout: float = 0.0
    head_bytes: int
    tail_bytes: int


class Wall(Protocol):
    """What stands between code and host, by name."""

    name: str

    def launch(self, launch: Launch, lock_fd: int) -> KeeperConnection:
        """Hand an execution over to a keeper, with its lock; it is guarded when this returns. Blocks for milliseconds.

        Returns the conversation with the keeper, which is the caller's to close.

        Raises:
            KeeperUnavailableError: No keeper could be had; nothing was started.
        """
        ...

    def begin(self, launch: Launch, *, may_wait: bool) -> KeeperConnection | None:
        """Ask for a turn that has no folder yet, and no places in line; None where that can only be launched.

        Returns the conversation with the keeper, which is the caller's to close. The keeper waits to be told by
        `handover.give_files` what else is to be in the folder, while the turn begins; `handover.has_begun` hears
        whether it has begun. Does not block where it may not wait.
        """
        ...

    def close(self) -> None:
        """Let go of what this process holds for it; executions go on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWorkspace:
    """A session's workspace: its root, opened by path only, which is the caller's to close. Sizes are bytes.

    `room` is how much more may be written to it; None: the file system itself sees to that. `used` is how much all
    workspaces of its owner hold, `allowed` how much they may.
    """

    fd: int
    room: int | None
    used: int
    allowed: int


class SessionKeeper(Protocol):
    """Who has the interpreters of sessions."""

    def ask(self, asked: Mapping[str, object], keeper: Path | None = None) -> Mapping[str, Any]:
        """Have something done with sessions; empty where nobody is there who could. Blocks.

        `keeper` is the folder of the keeper to ask; None: that of our own settings.
        """
        ...

    def open_workspace(self, folder: Path, keeper: Path | None = None) -> OpenWorkspace:
        """Open a session's workspace. Blocks.

        Raises:
            SandboxNotMadeError: It cannot be had.
            WallUnavailableError: Nobody is there who could open it.
        """
        ...
