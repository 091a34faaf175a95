"""Where everything lies on disk."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pyexec.domain.errors import DiskFullError, StateUnusableError
from pyexec.domain.principals import is_local
from pyexec.storage.packed import unpacked
from pyexec.storage.sessions import SessionFolders

PRIVATE = 0o700
_AUTOSAVED = "autosaved_scripts"


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The state folder and the places in it. Everything in it is for its owner's eyes only."""

    root: Path

    @property
    def database(self) -> Path:
        """The index of executions."""
        return self.root / "pyexec.db"

    @property
    def executions(self) -> Path:
        """One folder per execution: its log, its outcome, its inline code."""
        return _executions_of(self.root)

    @property
    def environments(self) -> Path:
        """The environments that have been made, and what is remembered about them."""
        return self.root / "environments"

    @property
    def packages(self) -> Path:
        """What has been put together for sandboxes besides their environment."""
        return self.root / "packages"

    @property
    def logs(self) -> Path:
        """The servers' own logs."""
        return self.root / "logs"

    @property
    def servers(self) -> Path:
        """Where servers show that they live."""
        return self.root / "servers"

    @property
    def interpreters_cache(self) -> Path:
        """Versions of the interpreters seen so far."""
        return self.root / "interpreters.json"

    @property
    def ended_users(self) -> Path:
        """Whom the operator has ended."""
        return self.root / "ended-users"

    @property
    def sessions(self) -> SessionFolders:
        """The folders of sessions."""
        return SessionFolders(self.root / "sessions")

    def execution(self, execution_id: str) -> Path:
        """The folder of one execution, which may be packed."""
        return _executions_of(self.root) / execution_id

    def unpacked(self, execution_id: str) -> Path:
        """The folder of one execution, to look into; blocks.

        Raises:
            StateUnusableError: It is packed, and there is no room for it.
        """
        try:
            return unpacked(self.execution(execution_id))
        except OSError as error:
            raise self._unusable(error) from error

    def queue(self, owner: str) -> Path:
        """The line in which this owner's executions stand."""
        return _line_of(self.root, owner)

    def scripts(self, owner: str) -> Path:
        """Where an owner's saved scripts lie; for the OS user a folder that is easily found."""
        return self._of(owner) / "scripts"

    def autosaved_scripts(self, owner: str) -> Path:
        """Where an owner's inline code is kept."""
        return self._of(owner) / _AUTOSAVED

    def autosaved_scripts_of_all(self) -> list[Path]:
        """Where the inline code of all owners is kept."""
        places = [self.root, *(self.root / "owners").glob("*")]
        return [place / _AUTOSAVED for place in places]

    def _of(self, owner: str) -> Path:
        return self.root if is_local(owner) else self.root / "owners" / _short_hash(owner)

    def create(self) -> None:
        """Make the folder and the places in it.

        Raises:
            StateUnusableError: It cannot be made or written.
        """
        try:
            for folder in (self.root, self.executions, self.logs, self.root / "queues"):
                folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise self._unusable(PermissionError(13, "Permission denied"))

    def require_room(self, needed: int) -> None:
        """Refuse new work on a disk that is nearly full.

        Raises:
            DiskFullError: Fewer than `needed` bytes are free.
        """
        free = shutil.disk_usage(self.root).free
        if free < needed:
            raise DiskFullError(
                f"The disk of the state folder {self.root} has {free // 2**20} MB left; "
                f"{needed // 2**20} MB are needed to start new work.",
                hint="Free some space or run `pyexec jobs prune`; what has run stays readable meanwhile.",
                free_bytes=free,
                needed_bytes=needed,
            )

    def _unusable(self, error: OSError) -> StateUnusableError:
        return StateUnusableError(
            f"The state folder {self.root} cannot be used: {error.strerror}.",
            hint="Set PYEXEC_HOME to a folder that you can write.",
        )


@lru_cache(maxsize=100)
def _executions_of(root: Path) -> Path:
    return root / "executions"


@lru_cache(maxsize=1000)
def _line_of(root: Path, owner: str) -> Path:
    return root / "queues" / _short_hash(owner)


def _short_hash(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()[:32]
