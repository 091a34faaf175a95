"""One turn of a guest, seen from its keeper.

What the guest says is written down in `frames`, each frame with where standard output and error were by then;
it is not believed: whoever reads it judges it. The files that it sends are written down as files, and only noted there.
A turn that may be over in a moment is held in memory until then.
"""

import os
import secrets
import socket
from collections.abc import Callable, Collection
from typing import Any

from pyexec_guest import protocol
from pyexec_guest.keeper.connection import GuestConnection
from pyexec_guest.keeper.files import FileBreachError, IncomingFiles
from pyexec_guest.keeper.loop import Loop

CHANNEL = "PYEXEC_CHANNEL"
FRAMES = "frames"
MAX_FRAMES_BYTES = 64 * 1024 * 1024
MAX_KEPT_BYTES = 32 * 1024
MOST_POSTPONED = 1000
MOST_LAST_GULPS = 400
_KIND_CHARACTERS = 40
_LARGEST_CODE = 255
UNTOLD_CODE = 70
"""The exit code of a turn whose guest told none that could be one."""
_EVENTS = ("display", "told", "file")


def turn_request(asked: "dict[str, Any]") -> "dict[str, Any]":
    """Return what a guest is asked for one turn: that, with a new id; its last one, unless that says `last` itself."""
    return {"last": True, **asked, "op": "run", "turn": secrets.token_hex(16)}


class GuestLink:
    """One turn of a guest: sends the request, puts what comes back in order with the output, and keeps it.

    Args:
        loop: The keeper's.
        folder: The execution's; None: there is none before `note_in`.
        request: What to ask for, see `turn_request`.
        positions: Reads all output there is now; returns how many bytes each stream has had.
        on_display: Hears what kind of display came.
        connection: To a guest that is there already; None: one that will be started, and inherits `guests_end`.
        earlier: The turns before it on this connection; what is still said of one of those is kept as having come late.
        files: The folder for files that the guest sends; None where none may come. It must not exist before `note_in`
            is called.
        on_end: Hears that the guest says no more: it has ended, or has been let go of because of what it said.
        sent: Whether the guest has been asked already.

    Attributes:
        broken: Why it has been let go of, when it said what no guest of ours says.
        exit_code: What the terminal frame says; None as long as there is none.
        kept: All that has been written into `frames`, while that is little, and nothing came besides; else None.
        held: What would be in `frames` by now, as long as there is none.
        has_more: Whether the guest has said what only a folder can take.
        at: How many bytes each stream had had when the latest frame came.
    """

    def __init__(
        self,
        loop: Loop,
        folder: "str | None",
        request: "dict[str, Any]",
        positions: "Callable[[], list[int]]",
        on_display: "Callable[[str], None]",
        *,
        connection: "GuestConnection | None" = None,
        earlier: "Collection[str]" = (),
        files: "str | None" = None,
        on_end: "Callable[[], None] | None" = None,
        sent: bool = False,
    ) -> None:
        self._request = request
        self._sent = sent
        self._earlier = frozenset(earlier)
        self._positions = positions
        self._on_display = on_display
        self._on_end = on_end
        self.broken: str | None = None
        self.exit_code: int | None = None
        self.at = [0, 0]
        self._room = MAX_FRAMES_BYTES
        self._kept: list[dict[str, Any]] | None = []
        self._kept_room = MAX_KEPT_BYTES
        self._ended = False
        self._number = 0
        # Beside a program of the user's own there may be more that speaks; a sandbox is ended at its first false word.
        self._judges = connection is not None
        self._theirs: socket.socket | None = None
        if connection is None:
            ours, self._theirs = socket.socketpair()
            connection = GuestConnection(ours)
        self._connection = connection
        self._files = None if files is None else IncomingFiles(files)
        self._held = bytearray()
        self._postponed: list[dict[str, Any]] = []
        self._file = -1 if folder is None else _open(folder)
        self._write({"t": "turn", "turn": self._request["turn"]})
        connection.listen(loop, self._take, self._on_gone)
        if connection.greeted:
            self._ask()

    @property
    def guests_end(self) -> int:
        """The descriptor that a guest inherits, where it is to be started."""
        return -1 if self._theirs is None else self._theirs.fileno()

    @property
    def turn(self) -> str:
        """The turn's id, which the guest repeats in all it says of it."""
        return str(self._request["turn"])

    @property
    def is_open(self) -> bool:
        """Whether the guest is still listened to."""
        return self._connection.is_open

    @property
    def ended(self) -> bool:
        """Whether the terminal frame has come; that it is a true one is for whoever reads the frames to say."""
        return self._ended

    @property
    def kept(self) -> "list[dict[str, Any]] | None":
        """See above."""
        return self._kept

    @property
    def held(self) -> bytes:
        """See above."""
        return bytes(self._held)

    @property
    def has_more(self) -> bool:
        """See above."""
        return bool(self._postponed) or self._kept is None

    @property
    def fault(self) -> "str | None":
        """Why a session whose guest this is has to end; None where it need not."""
        return None if self.broken is None else f"its interpreter said what none of ours says: {self.broken}"

    def note_in(self, folder: str, positions: "Callable[[], list[int]]", on_display: "Callable[[str], None]") -> None:
        """Write all into the execution's folder from now on; see above for the rest.

        Raises:
            OSError: It cannot be written.
        """
        self._positions, self._on_display = positions, on_display
        self._file = _open(folder)
        held, self._held = self._held, bytearray()
        try:
            written = os.write(self._file, held)
        except OSError:
            written = -1
        if written != len(held):
            self._room = 0
        postponed, self._postponed = self._postponed, []
        for message in postponed:
            if self._connection.is_open:
                self._judge(message)

    def interrupt(self) -> None:
        """Interrupt the turn; where none runs, nothing happens."""
        if self._connection.is_open and self._connection.greeted:
            self._connection.send({"op": "interrupt", "turn": self._request["turn"]})

    def note_late(self, frames: "list[dict[str, Any]]") -> None:
        """Keep what was said since the turn before, as having come late."""
        for frame in frames:
            self._write({**frame, "turn": self._request["turn"], "at": self._positions()})

    def close(self, *, keep: bool = False) -> None:
        """Take what has arrived, and let go of the guest, or with `keep` only of the turn."""
        if self._theirs is not None:
            self._theirs.close()
        # Something that the guest has left behind may hold its end open: whatever comes later is not ours.
        for _gulp in range(MOST_LAST_GULPS):
            if not self._connection.read():
                break
        else:
            self._break_off("no end of frames")
        if keep:
            self._connection.leave()
        else:
            self._connection.hang_up()
        if self._files is not None:
            self._files.close()
        if self._file >= 0:
            os.close(self._file)

    def _ask(self) -> None:
        if not self._sent:
            self._sent = True
            self._connection.send(self._request, large=True)

    def _take(self, message: "dict[str, Any]") -> None:
        kind = message.get("t")
        if not self._connection.greeted:
            self._connection.greeted = True
            if kind != "hello" or message.get("v") != protocol.VERSION:
                self._break_off("it does not speak as a guest of this version does")
                return
            self._ask()
        if self._file < 0 and not self._ended and (self._postponed or message.get("k") == "file"):
            self._postpone(message)
        else:
            self._judge(message)

    def _postpone(self, message: "dict[str, Any]") -> None:
        """Keep a frame until there is a folder, which is made as soon as there is one of these."""
        if len(self._postponed) < MOST_POSTPONED:
            self._postponed.append(message)
        else:
            self._break_off("more frames at once than a guest of ours sends")

    def _judge(self, message: "dict[str, Any]") -> None:
        kind = message.get("t")
        turn = message.get("turn")
        if kind == "late" and isinstance(turn, str) and turn in self._earlier:
            message = {**message, "turn": self.turn}
        fault = self._fault_of(message) if self._judges and kind != "hello" else None
        if fault is not None:
            self._break_off(fault)
            return
        what = message.get("k") if kind == "event" else None
        if what == "file":
            self._take_file(message)
            return
        self.at = self._positions()
        self._write({**message, "at": self.at})
        if self.broken is not None:
            return
        if kind == "done":
            self._ended = True
            code = message.get("exit_code")
            self.exit_code = code if isinstance(code, int) and 0 <= code <= _LARGEST_CODE else UNTOLD_CODE
        if what in ("display", "told"):
            self._connection.send({"op": "ack", "n": message.get("n")})
        if what == "display":
            self._on_display(str(message.get("kind"))[:_KIND_CHARACTERS])

    def _fault_of(self, message: "dict[str, Any]") -> "str | None":
        """Return why a frame cannot come here, in the words of whoever reads the frames."""
        kind = message.get("t")
        if message.get("turn") != self._request["turn"]:
            return "a frame for another turn"
        if kind == "late":
            return None
        if kind not in ("event", "done"):
            return f"a frame of type {str(kind)[:_KIND_CHARACTERS]!r} within a turn"
        return "a frame after the terminal one" if self._ended else self._fault_in_order(kind, message)

    def _fault_in_order(self, kind: str, message: "dict[str, Any]") -> "str | None":
        self._number += 1
        if message.get("n") != self._number or isinstance(message.get("n"), bool):
            return f"frame {str(message.get('n'))[:_KIND_CHARACTERS]} where {self._number} was due"
        if kind == "event" and message.get("k") not in _EVENTS:
            return f"an event of kind {str(message.get('k'))[:_KIND_CHARACTERS]!r}"
        return None

    def _take_file(self, message: "dict[str, Any]") -> None:
        """Write a piece of a file down as such, and note among the frames that it came."""
        if self._files is None or message.get("turn") != self._request["turn"] or self._ended:
            self._break_off("a file where none is due")
            return
        try:
            noted = self._files.take(message)
        except FileBreachError as error:
            self._break_off(str(error))
            return
        self._write({"t": "event", "turn": message.get("turn"), "n": message.get("n"), "k": "file", **noted})

    def _on_gone(self, why: "str | None") -> None:
        if why is not None:
            self._note_broken(why)
        if self._on_end is not None:
            self._on_end()

    def _break_off(self, why: str) -> None:
        """Let go of a guest that does not speak as ours do, and write down why."""
        self._note_broken(why)
        self._connection.hang_up()
        if self._on_end is not None:
            self._on_end()

    def _note_broken(self, why: str) -> None:
        self.broken = why
        self._write({"t": "broken", "why": why})

    def _write(self, message: "dict[str, Any]") -> None:
        try:
            frame = protocol.encode(message)
        except (RecursionError, ValueError):  # What has come can be deeper than what can be written.
            if self.broken is None:
                self._break_off("a frame that cannot be written down")
            return
        self._keep(message, len(frame))
        if len(frame) > self._room:
            return
        if self._file < 0:
            self._held += frame
            self._room -= len(frame)
            return
        try:
            written = os.write(self._file, frame)
        except OSError:
            written = 0
        if written == len(frame):
            self._room -= written
        else:
            self._room = 0  # A full disk has torn it; nothing behind it could be read.

    def _keep(self, message: "dict[str, Any]", size: int) -> None:
        self._kept_room -= size
        if self._kept_room < 0 or message.get("k") == "file" or message.get("t") == "broken":
            self._kept = None
        elif self._kept is not None:
            self._kept.append(message)


def _open(folder: str) -> int:
    return os.open(os.path.join(folder, FRAMES), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
