"""The guest's loop: one request in, events and exactly one terminal frame out."""

import atexit
import contextlib
import faulthandler
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, cast

from pyexec_guest import introspect, limits, protocol
from pyexec_guest.attribution import Threads, Turn
from pyexec_guest.changes import REPORTED, Change, Watch
from pyexec_guest.channel import Channel, Interrupts
from pyexec_guest.displays.desk import Displays
from pyexec_guest.hooks import ImportHooks
from pyexec_guest.instead.pip import IN_A_SANDBOX
from pyexec_guest.outgoing import Folder, Sender
from pyexec_guest.packages import AddedPackages
from pyexec_guest.shell.installing import refuse_pip
from pyexec_guest.shell.interpreter import GuestShell, Ran
from pyexec_guest.shell.programs import Program
from pyexec_guest.shell.rehearsal import rehearsing
from pyexec_guest.shell.spawning import Spawning
from pyexec_guest.streams import Streams
from pyexec_guest.text import clip, describe
from pyexec_guest.variables import set_variables

LATE_FRAMES = 1000
INTERNAL_CODE = 70
NAMED = 5
IDLE_SECONDS = 0.05
"""How long a sandbox is without a request before it is taken for one that is kept ready, which has time."""


class Prepared:
    """What runs cells and shows what they show, made before there is anybody to do it for."""

    def __init__(self, *, in_a_sandbox: bool = False) -> None:
        self.hooks = ImportHooks()
        self.displays = Displays(self.hooks)
        self.shell = GuestShell.make(self.displays.value, self.displays.published)
        self.displays.install(self.shell.display_formatter)
        self.ipython = introspect.version_of("ipython")
        self.added = AddedPackages() if in_a_sandbox else None
        if in_a_sandbox:
            self.shell.no_installing = IN_A_SANDBOX
            for name in ("pip", "pip._internal"):
                self.hooks.after(name, refuse_pip)


def prepare() -> Prepared:
    """Return what a guest in a sandbox needs and many forks of one process can share."""
    return Prepared(in_a_sandbox=True)


def serve(fd: int, files: "str | None") -> int:
    """Serve whoever holds the other end of a socket, until it is done; return the exit code of this process.

    `files` is a folder for what is too large to be sent.
    """
    return _serve(fd, Prepared(), files)


def serve_prepared(fd: int, prepared: Prepared, finish: "Callable[[], None]") -> int:
    """Do the same in a fork; whoever is at the other end has no folder in common with it, and is sent its files.

    `finish` does what an interpreter does at its end. It is called within the last turn: with that all is said.
    """
    prepared.shell.begin_here()
    if prepared.added is not None:
        prepared.added.begin()
    return _serve(fd, prepared, None, finish)


def _serve(fd: int, prepared: Prepared, files: "str | None", finish: "Callable[[], None] | None" = None) -> int:
    faulthandler.enable()
    interrupts = Interrupts()
    return Loop(Channel(socket.socket(fileno=fd), interrupts), interrupts, prepared, files, finish).run()


class Loop:
    """Serves requests one after the other, on the main thread, until the channel ends."""

    def __init__(
        self,
        channel: Channel,
        interrupts: Interrupts,
        prepared: Prepared,
        files: "str | None",
        finish: "Callable[[], None] | None" = None,
    ) -> None:
        self._began = time.monotonic()
        self._channel = channel
        self._interrupts = interrupts
        self._prepared = prepared
        self._finish = finish
        self._current: Turn | None = None
        self._last: Turn | None = None
        self._turns = 0
        self._over = False
        self._pid = os.getpid()
        self._main = threading.get_ident()
        self._threads = Threads()
        self._streams = Streams(self._late_output)
        self._displays = prepared.displays
        self._shell = prepared.shell
        self._sender = Sender(self._piece, channel.alone) if finish is not None else None
        self._watch = Watch(introspect.directory())
        self._headroom = limits.Headroom()
        self._shell.on_end_of_code = self._headroom.use
        self._displays.connect(self._show, self._sender or (Folder(files) if files else None))
        spawning = Spawning(self._shell.inputs)
        prepared.hooks.after("multiprocessing.spawn", spawning.patch)
        atexit.register(spawning.remove)

    def run(self) -> int:
        """Serve; return the exit code of this process."""
        self._channel.listen(self._on_interrupt, self._on_end)
        self._channel.send(
            {
                "t": "hello",
                "v": protocol.VERSION,
                "pid": self._pid,
                "python": ".".join(str(part) for part in sys.version_info[:3]),
                "ipython": self._prepared.ipython,
            }
        )
        self._get_ready()
        if self._prepared.added is not None and self._channel.waits_for(IDLE_SECONDS):
            self._rehearse()
        while True:
            self._get_ready()
            request = self._channel.request()
            if request.get("op") == "close":
                return 0
            code = self._serve(request)
            if os.getpid() != self._pid:
                os._exit(code)  # A copy that the code has forked and let run out of its cell.
            if request.get("last"):
                self._over = True
                return code

    def _get_ready(self) -> None:
        """Do ahead of a turn what needs not wait for it, and put right what the turn before has changed."""
        self._interrupts.install()
        self._shell.get_ready()
        self._streams.get_ready()

    def _rehearse(self) -> None:
        """Go through a turn ahead of the first one: this process has still to copy the memory that it changes."""
        with rehearsing(self._shell), self._channel.muted():
            self._run(Turn(""), {"code": "1 + 1"})
        self._turns, self._last = 0, None

    # -- what arrives, on a thread of its own ----------------------------------------------------------------------

    def _on_interrupt(self, message: "dict[str, Any]") -> None:
        turn = self._current
        if turn is not None and turn.id == message.get("turn"):
            self._interrupts.deliver(lambda: self._current is turn)

    def _on_end(self) -> None:
        """Nobody is there any more who could take what this process does."""
        os._exit(0)

    # -- serving ---------------------------------------------------------------------------------------------------

    def _serve(self, request: "dict[str, Any]") -> int:
        turn = Turn(str(request.get("turn")))
        if request.get("op") == "info":
            self._channel.send({"t": "done", "turn": turn.id, "n": turn.next(), "info": self._info()})
            return 0
        if request.get("op") != "run":
            self._channel.send({"t": "done", "turn": turn.id, "n": turn.next(), "status": "refused"})
            return INTERNAL_CODE
        return self._run(turn, request)

    def _run(self, turn: Turn, request: "dict[str, Any]") -> int:
        began = time.monotonic()
        self._threads.begin(turn, self._last)
        self._turns += 1
        self._current = self._last = turn
        self._channel.begin_turn()
        self._displays.begin()
        if self._sender is not None:
            self._sender.begin()
        self._watch.begin()
        self._streams.begin(request.get("stdin"))
        ran = Ran(status="error", exit_code=INTERNAL_CODE)
        with (
            set_variables(request.get("env"), stay=bool(request.get("keep_env"))),
            contextlib.suppress(KeyboardInterrupt),
            self._interrupts.armed(),
        ):
            self._headroom.keep()
            if self._prepared.added is not None:
                self._prepared.added.look()
            ran = self._run_what(request)
            self._displays.finish()
        self._headroom.use()
        ran = self._settled(ran)
        if self._finish is not None and request.get("last") and os.getpid() == self._pid:
            self._interrupts.install()
            with contextlib.suppress(KeyboardInterrupt), self._interrupts.armed():
                self._finish()
        for note in self._displays.notes():
            ran.note(note)
        self._streams.flush()
        if request.get("tell"):
            self._tell(turn, ran)
        if os.getpid() == self._pid:
            files = self._changed_files(ran, send=bool(request.get("last")))
            with self._channel.alone():  # What a thread still shows comes before the terminal frame, or late.
                if not request.get("last"):
                    self._channel.end_turn()
                self._channel.send({**self._done(turn, ran, time.monotonic() - began), "files": files})
                self._current = None
        self._current = None
        return ran.exit_code

    def _run_what(self, request: "dict[str, Any]") -> Ran:
        asked = request.get("program")
        if not isinstance(asked, dict):
            return self._shell.run(_code_of(request))
        program = Program(cast("dict[str, Any]", asked))
        program.settle_in()
        return self._shell.run_program(program) if program.runs else self._shell.run(_code_of(request))

    def _changed_files(self, ran: Ran, *, send: bool) -> "list[dict[str, Any]]":
        """Return what the code has created or changed in its working directory; send it where that is asked for."""
        found = self._watch.changes()
        if len(found) > REPORTED:
            ran.note(f"{len(found) - REPORTED} more files were created or changed than are listed.")
        left_out = [one.path for one in found[:REPORTED] if send and not self._is_handed_over(one)]
        if left_out:
            names = ", ".join(left_out[:NAMED]) + (" …" if len(left_out) > NAMED else "")
            ran.note(f"Too large to be handed over, and lost with the sandbox: {clip(names, 500)}.")
        return [{"path": one.path, "size": one.size, "change": one.change} for one in found[:REPORTED]]

    def _is_handed_over(self, change: Change) -> bool:
        """Send a file where its reader cannot get at it otherwise; tell whether that went well."""
        if self._sender is None:
            return True
        try:
            return self._sender.keep_file(change.path, self._watch.path_of(change)) is not None
        except OSError:
            return True  # It has been removed meanwhile, or is not ours to read.

    def _settled(self, ran: Ran) -> Ran:
        """Say that it was interrupted, where the interrupt came so late that the cell itself did not see it."""
        if ran.exit_code == INTERNAL_CODE and ran.failure is None:
            return Ran(status="interrupted", exit_code=130, failure={"type": "KeyboardInterrupt", "message": ""})
        return ran

    def _tell(self, turn: Turn, ran: Ran) -> None:
        """Write on stderr what a script would have written there; first say that what follows is that."""
        failure = ran.failure
        if failure is None:
            return
        text = failure.get("traceback") or f"{failure['type']}: {failure['message']}\n"
        if failure["type"] == "SystemExit":
            text = "" if failure["message"].startswith("The code called") else f"{failure['message']}\n"
        if text:
            self._event(turn, "told", {"bytes": len(text.encode("utf-8", "backslashreplace"))}, in_order=True)
            self._streams.tell(text)

    def _done(self, turn: Turn, ran: Ran, seconds: float) -> "dict[str, Any]":
        return {
            "t": "done",
            "turn": turn.id,
            "n": turn.next(),
            "status": ran.status,
            "exit_code": ran.exit_code,
            "value": ran.value,
            "value_type": ran.value_type,
            "failure": ran.failure,
            "notes": ran.notes,
            "left_out": turn.left_out,
            "seconds": round(seconds, 6),
            "peak_memory": limits.peak_memory_bytes(),
        }

    def _info(self) -> "dict[str, Any]":
        return {
            "variables": introspect.variables(self._shell.user_ns, self._shell.user_ns_hidden),
            "packages": introspect.packages(),
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "memory": limits.memory_bytes(),
            "peak_memory": max(limits.peak_memory_bytes(), limits.memory_bytes()),
            "age_seconds": round(time.monotonic() - self._began, 3),
            "turns": self._turns,
            "directory": introspect.directory(),
        }

    # -- what leaves -----------------------------------------------------------------------------------------------

    def _show(self, shown: "dict[str, Any]") -> None:
        """Send a display, in its place among the output; from any thread."""
        turn = self._threads.turn_of_this(self._current)
        if turn is not None and turn is self._current:
            self._streams.flush()
            if self._event(turn, "display", shown, in_order=True):
                return
        self._send_late(turn or self._last, {"k": "display", **shown})

    def _piece(self, fields: "dict[str, Any]") -> bool:
        """Send a piece of a file; tell whether that belongs to the turn that runs."""
        turn = self._threads.turn_of_this(self._current)
        return turn is not None and self._send_event(turn, {"k": "file", **fields})

    def _event(self, turn: Turn, kind: str, fields: "dict[str, Any]", *, in_order: bool = False) -> bool:
        """Send an event, or count it where there is no room for it; tell whether its turn still runs."""
        weight = _weight(fields)
        if weight > turn.room:
            turn.left_out += 1
            return True
        turn.room -= weight
        return self._send_event(turn, {"k": kind, **fields}, in_order=in_order)

    def _send_event(self, turn: Turn, fields: "dict[str, Any]", *, in_order: bool = False) -> bool:
        send = self._channel.send_and_wait if in_order else self._channel.send
        with self._channel.alone():  # A number that is taken is a frame that is sent, and the next one comes after it.
            if turn is not self._current:
                return False
            send({"t": "event", "turn": turn.id, "n": turn.next(), **fields})
            return True

    def _late_output(self, stream: str, text: str) -> bool:
        current = self._current
        if threading.get_ident() == self._main or self._over or not self._channel.is_open:
            return False
        turn = self._threads.turn_of_this(current)
        if turn is current and current is not None:
            return False
        self._send_late(turn or self._last, {"k": stream, "text": text})
        return True

    def _send_late(self, turn: "Turn | None", fields: "dict[str, Any]") -> None:
        if turn is None or turn.late >= LATE_FRAMES or _weight(fields) > protocol.GUEST_FRAME // 2:
            return
        turn.late += 1
        self._channel.send({"t": "late", "turn": turn.id, **fields})


def _code_of(request: "dict[str, Any]") -> str:
    code = request.get("code")
    if isinstance(code, str):
        return code
    try:
        with open(str(request.get("path")), encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except OSError as error:
        return f"raise OSError({describe(error)!r})"


def _weight(fields: "dict[str, Any]") -> int:
    """Return roughly how many bytes a frame has: texts count, those of objects in it too."""
    weight = 100
    for value in fields.values():
        if isinstance(value, str):
            weight += len(value)
        elif isinstance(value, dict):
            weight += _weight(cast("dict[str, Any]", value))
        else:
            weight += 20
    return weight
