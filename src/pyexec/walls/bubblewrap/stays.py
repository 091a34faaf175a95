"""Where an execution runs: a sandbox of its own, or one that a session keeps."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from pyexec.sandbox.guarding import GuestConnection
from pyexec.storage.packed import Packer
from pyexec.storage.sessions import SessionFolder
from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.folders import PACKAGES, Folder
from pyexec.walls.bubblewrap.sessions.live import LiveSession
from pyexec.walls.bubblewrap.sessions.sessions import Sessions, how_it_ended
from pyexec.walls.bubblewrap.turnstile import Admission, Ticket, Turnstile
from pyexec.walls.bubblewrap.weights import Weights


class Boxes(Protocol):
    """Gives out sandboxes that nobody has used, by the folder of their environment and the folders they have."""

    def sandbox(self, environment: Path, folders: Sequence[Folder], room: Admission) -> Box:
        """Return one, after a while."""
        ...

    def sandbox_at_once(self, environment: Path, folders: Sequence[Folder], room: Admission) -> Box | None:
        """Return one that is ready, if there is any."""
        ...

    def keep(self, environment: Path) -> None:
        """Take an environment for the usual one."""
        ...

    def is_starting(self, environment: Path) -> bool:
        """Tell whether what makes them is just being started."""
        ...


class Stay(Protocol):
    """A sandbox for one turn.

    Attributes:
        box: The sandbox.
        connection: To its guest.
        request: What the turn's request has besides what the caller asks for.
        earlier: The turns before it, which may have left threads that still speak.
        patience: How many seconds an interrupt may take until the sandbox is ended.
        kept: What to say to who had it interrupted, when it lives on.
        lasts: Whether the sandbox stays when the turn is over.
    """

    lasts: bool
    box: Box
    connection: GuestConnection
    request: Mapping[str, Any]
    earlier: tuple[str, ...]
    patience: float
    kept: str | None

    def late(self) -> list[dict[str, Any]]:
        """Return what was said since the turn before."""
        ...

    def began(self, turn: str) -> None:
        """Note the turn's id."""
        ...

    def ended_by(self) -> str | None:
        """Return why somebody has ended it meanwhile."""
        ...

    def leave(self, *, alive: bool, reason: str | None) -> str | None:
        """Let go of it once the turn is over, or the sandbox; return what the turn's reader should know of that."""
        ...

    def close(self) -> None:
        """Clear up, when all has been said."""
        ...


class OwnSandbox:
    """A sandbox for one execution."""

    lasts = False
    request: Mapping[str, Any] = {}
    earlier: tuple[str, ...] = ()
    patience = 0.8
    kept: str | None = None

    def __init__(self, box: Box) -> None:
        self.box = box
        self.connection = GuestConnection(box.sandbox.socket)

    def late(self) -> list[dict[str, Any]]:
        """See `Stay.late`."""
        return []

    def began(self, turn: str) -> None:
        """See `Stay.began`."""

    def ended_by(self) -> str | None:
        """See `Stay.ended_by`."""
        return None

    def leave(self, *, alive: bool, reason: str | None) -> str | None:
        """See `Stay.leave`."""
        return None

    def close(self) -> None:
        """See `Stay.close`."""
        self.box.close()


class InSession:
    """A turn in a session's sandbox."""

    lasts = True
    patience = 3.0
    kept: str | None = "It was interrupted, and its session keeps its variables."

    def __init__(self, sessions: Sessions, live: LiveSession) -> None:
        self._sessions = sessions
        self._live = live
        self._left = False
        self.box = live.box
        self.connection = live.connection
        self.earlier = tuple(live.turns)
        # The variables of the call that starts a session stay.
        self.request: Mapping[str, Any] = {"last": False, "keep_env": not live.turns}

    def late(self) -> list[dict[str, Any]]:
        """See `Stay.late`."""
        return self._live.take_late()

    def began(self, turn: str) -> None:
        """See `Stay.began`."""
        self._live.turns.append(turn)

    def ended_by(self) -> str | None:
        """See `Stay.ended_by`."""
        return self._live.ended

    def leave(self, *, alive: bool, reason: str | None) -> str | None:
        """See `Stay.leave`."""
        self._left = True
        if alive and self.connection.is_open and self._live.ended is None:
            self._sessions.leave(self._live)
            return None
        self._sessions.dismiss(self._live, reason or how_it_ended(self.box))
        return (
            "With it its session has ended: the variables are lost, the files are kept. restart_session starts it anew."
        )

    def close(self) -> None:
        """See `Stay.close`."""
        if not self._left:
            self.leave(alive=True, reason=None)
        self._live.folder.note_use()


class House:
    """Gives executions their sandboxes.

    Args:
        boxes: Sandboxes for one execution each.
        sessions: Those that stay.
        turnstile: Who gets one next.
        packer: Writes down turns that were over in a moment.

    Attributes:
        weights: How they share the processors.
        packer: As above.
    """

    def __init__(self, boxes: Boxes, sessions: Sessions, turnstile: Turnstile, packer: Packer) -> None:
        self._boxes = boxes
        self._sessions = sessions
        self._turnstile = turnstile
        self.weights = Weights()
        self.packer = packer

    def before(self, ticket: Ticket) -> int | None:
        """See `Turnstile.before`."""
        return self._turnstile.before(ticket)

    def keep(self, prefix: Path) -> None:
        """Take an environment for the usual one, which executions need not wait for."""
        self._boxes.keep(prefix)

    def is_starting(self, prefix: Path) -> bool:
        """Tell whether who wants to stay somewhere with that environment waits for its fork server."""
        return self._boxes.is_starting(prefix)

    def stay(
        self,
        ticket: Ticket,
        prefix: Path,
        session: Mapping[str, Any] | None,
        folders: Sequence[Folder],
        packages: Path | None = None,
    ) -> Stay:
        """Return where an execution runs, with these folders where that is new; blocks.

        Args:
            ticket: Whose it is.
            prefix: The environment it runs on.
            session: The session that it is a turn of.
            folders: Folders of this machine that can be read there.
            packages: What it can import besides; a session has a folder of its own for that.

        Raises:
            PyexecError: There is no place; see `Families.sandbox` and `Sessions.enter`.
        """
        if session is None:
            wanted = [*folders, *_packages(packages)]
            return OwnSandbox(self._turnstile.admit(ticket, lambda room: self._boxes.sandbox(prefix, wanted, room)))
        live = self._sessions.enter(ticket, _folder_of(session["folder"]), prefix, folders)
        return InSession(self._sessions, live)

    def stay_at_once(
        self,
        ticket: Ticket,
        prefix: Path,
        session: Mapping[str, Any] | None,
        folders: Sequence[Folder],
        packages: Path | None = None,
    ) -> Stay | None:
        """Do the same if nobody has to wait for it; None where `stay` has to, which then also tells what is wrong."""
        if session is None:
            wanted = [*folders, *_packages(packages)]
            box = self._turnstile.admit_at_once(ticket, lambda room: self._boxes.sandbox_at_once(prefix, wanted, room))
            return None if box is None else OwnSandbox(box)
        live = self._sessions.enter_at_once(_folder_of(session["folder"]), prefix)
        return None if live is None else InSession(self._sessions, live)


@lru_cache(maxsize=1000)
def _folder_of(path: str) -> SessionFolder:
    return SessionFolder(Path(path))


def _packages(packages: Path | None) -> tuple[Folder, ...]:
    return () if packages is None else (Folder(place=PACKAGES, source=packages),)
