"""What the folder of a session says about it. The files are the truth; there is no other record.

session.json    what it is, written once by whoever made it
choice.json     what its interpreter is to be, written once by whoever first runs something in it, where whoever made it
                did not say
life.json       since when its interpreter lives, written by the keeper that has it
ended.json      why it does no longer
lock            held by that keeper as long as the interpreter lives
used            changed when an execution in it ends
size            how many bytes its files had when its interpreter ended, or somebody looked since; not there while it
                lives, and empty when somebody may have changed them
queue/          the line in which its executions stand
    workspace…      its files
    packages/       what was installed for it
"""

import fcntl
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyexec.domain.sessions import Session, SessionEnd
from pyexec.storage import hostile_folders
from pyexec.storage.json_files import read_json, write_json, write_text
from pyexec.storage.plain_files import write_plain
from pyexec_guest.keeper.turn import is_locked

KILLED = "lost: the keeper of its sandbox was killed"
CHANGING_SECONDS = 60.0
"""Whoever is about to change files has done so after that."""

_VERSION = 1
_SESSION = "session.json"
_CHOICE = "choice.json"
_LIFE = "life.json"
_ENDED = "ended.json"
_LOCK = "lock"
_USED = "used"
_SIZE = "size"
_SIZE_DIGITS = 20


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """One session's folder."""

    path: Path

    @property
    def queue(self) -> Path:
        """The line in which its executions stand."""
        return _line_in(self.path)

    @property
    def packages(self) -> Path:
        """The packages that were installed for it."""
        return self.path / "packages"

    def create(
        self,
        session_id: str,
        owner: str,
        *,
        python: str | None = None,
        environment: str | None = None,
        chosen: bool = True,
    ) -> bool:
        """Make it, unless it is there; tell whether it was not. Its interpreter may be left to be `chosen` later."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        values = {
            "v": _VERSION,
            "id": session_id,
            "owner": owner,
            "created_at": time.time(),
            "python": python,
            "environment": environment,
            "chosen": chosen,
        }
        with suppress(FileExistsError):
            write_plain(self.path / _SESSION, json.dumps(values).encode(), replace=False)
            return True
        return False

    def choose(self, *, python: str | None, environment: str | None) -> None:
        """Say what its interpreter is to be, unless somebody has said so."""
        choice = {"python": python, "environment": environment}
        with suppress(FileExistsError, FileNotFoundError):  # Somebody has; or it is just being removed.
            write_plain(self.path / _CHOICE, json.dumps(choice).encode(), replace=False)

    def read(self) -> Session | None:
        """Return the session; None where there is none."""
        values = read_json(self.path / _SESSION)
        if not values:
            return None
        choice = {} if values.get("chosen", True) else read_json(self.path / _CHOICE)
        # The end is written before the lock is let go of, and the life before it counts.
        life = read_json(self.path / _LIFE)
        lives = bool(life) and self.is_live()
        ended = {} if lives or not life else read_json(self.path / _ENDED)
        end = None
        if life and not lives:
            end = SessionEnd(
                reason=str(ended.get("reason") or KILLED),
                ended_at=float(ended.get("ended_at") or self._used_at(values)),
            )
        return Session(
            id=str(values["id"]),
            owner=str(values["owner"]),
            state="live" if lives else "ended" if life else "new",
            created_at=float(values["created_at"]),
            chosen=bool(values.get("chosen", True) or choice),
            python=choice.get("python", values.get("python")),
            environment=choice.get("environment", values.get("environment")),
            started_at=float(life["started_at"]) if life else None,
            used_at=self._used_at(values),
            keeper=str(life["keeper"]) if lives else None,
            prefix=str(life["prefix"]) if life else None,
            end=end,
        )

    def is_live(self) -> bool:
        """Tell whether a keeper has its interpreter."""
        return is_locked(os.fspath(self.path / _LOCK))

    def begin(self, keeper: Path, prefix: Path) -> int:
        """Note that its interpreter lives; return the lock, which is to be held as long as it does.

        Raises:
            BlockingIOError: It lives already.
        """
        lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (self.path / _ENDED).unlink(missing_ok=True)
            (self.path / _SIZE).unlink(missing_ok=True)
            write_json(self.path / _LIFE, {"started_at": time.time(), "keeper": str(keeper), "prefix": str(prefix)})
        except BaseException:
            os.close(lock)
            raise
        return lock

    def end(self, lock: int, reason: str | None) -> None:
        """Note that its interpreter lives no more, and why; None: as if there had not been one."""
        with suppress(OSError):  # Where its folder is gone, or the disk full, the lock says it.
            if reason is None:
                self.renew()
            else:
                write_json(self.path / _ENDED, {"reason": reason, "ended_at": time.time()})
        os.close(lock)

    def renew(self) -> None:
        """Forget that it has ended, so that its interpreter starts with the next execution."""
        for name in (_LIFE, _ENDED):
            (self.path / name).unlink(missing_ok=True)

    def note_use(self) -> None:
        """Note that it was used just now."""
        with suppress(OSError):
            (self.path / _USED).touch(0o600)

    def note_size(self, size: int) -> None:
        """Note how many bytes its files have."""
        with suppress(OSError):
            write_text(self.path / _SIZE, str(size))

    def forget_size(self) -> None:
        """Forget what was noted so, as somebody is about to change them."""
        try:
            write_text(self.path / _SIZE, "")
        except OSError:
            with suppress(OSError):
                (self.path / _SIZE).unlink(missing_ok=True)

    def keeps_its_size(self) -> bool:
        """Tell whether nobody changes its files: none has been about to for a while, and no interpreter has them."""
        try:
            forgotten_at = (self.path / _SIZE).stat().st_mtime
        except FileNotFoundError:  # After an interpreter that did not come to note it.
            forgotten_at = 0.0
        except OSError:
            return False
        return time.time() - forgotten_at > CHANGING_SECONDS and not self.is_live()

    def noted_size(self) -> int | None:
        """Return what was noted so."""
        with suppress(OSError, ValueError), open(self.path / _SIZE, "rb") as file:
            return int(file.read(_SIZE_DIGITS))
        return None

    def remove(self) -> None:
        """Remove it with all its files."""
        gone = self.path.with_name(f".{self.path.name}-{secrets.token_hex(8)}")
        with suppress(FileNotFoundError):
            self.path.rename(gone)  # In one step, so that nobody finds half a session.
        hostile_folders.remove(gone)

    def _used_at(self, values: dict[str, Any]) -> float:
        try:
            return (self.path / _USED).stat().st_mtime
        except OSError:
            return float(values["created_at"])


@dataclass(frozen=True, slots=True)
class SessionFolders:
    """The folders of all sessions, those of each owner in one of their own."""

    root: Path

    def of(self, owner: str, session_id: str) -> SessionFolder:
        """Return the folder of a session, whether there is one or not."""
        return SessionFolder(self.of_owner(owner) / _digest(session_id))

    def of_owner(self, owner: str) -> Path:
        """Return where the sessions of one owner lie."""
        return self.root / _digest(owner)

    def all_of(self, owner: str) -> Iterator[SessionFolder]:
        """Yield the folders of an owner's sessions."""
        yield from _folders_in(self.of_owner(owner))

    def half_removed(self, owner: str) -> list[Path]:
        """Return what is left of sessions of one owner whose removal came to no end, or is going on."""
        return _half_removed_in(self.of_owner(owner))

    def abandoned(self, before: float) -> Iterator[Path]:
        """Yield what is left of such sessions of everybody, since before a moment: nobody is at it any more."""
        for owner in _entries(self.root):
            for path in _half_removed_in(owner):
                with suppress(OSError):
                    if path.stat(follow_symlinks=False).st_ctime < before:
                        yield path

    def all(self) -> Iterator[SessionFolder]:
        """Yield the folders of all sessions."""
        for owner in _entries(self.root):
            yield from _folders_in(owner)


def _folders_in(owner: Path) -> Iterator[SessionFolder]:
    for path in _entries(owner):
        yield SessionFolder(path)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []


def _half_removed_in(owner: Path) -> list[Path]:
    try:
        return sorted(path for path in owner.iterdir() if path.name.startswith("."))
    except OSError:
        return []


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@lru_cache(maxsize=1000)
def _line_in(session: Path) -> Path:
    return session / "queue"
