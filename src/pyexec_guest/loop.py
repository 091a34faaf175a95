"""The guest's loop: one request in, events and exactly one terminal frame out."""

import atexit
import contextlib
import faulthandler
import os
import queue
import socket
import sys
import threading
import time
from typing import Any, cast

from pyexec_guest import introspect, limits, protocol
from pyexec_guest.attribution import Threads, Turn
from pyexec_guest.channel import Channel, Interrupts
from pyexec_guest.displays.desk import Displays
from pyexec_guest.hooks import ImportHooks
from pyexec_guest.shell.interpreter import GuestShell, Ran
from pyexec_guest.shell.spawning import Spawning
from pyexec_guest.streams import Streams
from pyexec_guest.text import describe

LATE_FRAMES = 1000
INTERNAL_CODE = 70


def serve(fd: int, files: "str | None") -> int:
    """Serve whoever holds the other end of a socket, until it is done; return the exit code of this process.

    `files` is a folder for what is too large to be sent.
    """
    faulthandler.enable()
    interrupts = Interrupts()
    return Loop(Channel(socket.socket(fileno=fd), interrupts), interrupts, files).run()


class Loop:
    """Serves requests one after the other, on the main thread, until the channel ends."""

    def __init__(self, channel: Channel, interrupts: Interrupts, files: "str | None") -> None:
        self._channel = channel
        self._interrupts = interrupts
        self._inbox: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._current: Turn | None = None
        self._last: Turn | None = None
        self._turns = 0
        self._over = False
        self._pid = os.getpid()
        self._main = threading.get_ident()
        self._threads = Threads()
        self._streams = Streams(self._late_output)
        hooks = ImportHooks()
        self._displays = Displays(self._show, files, hooks)
        self._shell = GuestShell.make(self._displays.value, self._displays.published)
        self._displays.install(self._shell.display_formatter)
        spawning = Spawning(self._shell.inputs)
        hooks.after("multiprocessing.spawn", spawning.patch)
        atexit.register(spawning.remove)

    def run(self) -> int:
        """Serve; return the exit code of this process."""
        self._interrupts.install()
        self._channel.listen(self._on_message, self._on_end)
        self._channel.send(
            {
                "t": "hello",
                "v": protocol.VERSION,
                "pid": self._pid,
                "python": ".".join(str(part) for part in sys.version_info[:3]),
                "ipython": introspect.version_of("ipython"),
            }
        )
        while True:
            request = self._inbox.get()
            if request is None or request.get("op") == "close":
                return 0
            code = self._serve(request)
            if os.getpid() != self._pid:
                os._exit(code)  # A copy that the code has forked and let run out of its cell.
            if request.get("last"):
                self._over = True
                return code

    # -- what arrives, on a thread of its own ----------------------------------------------------------------------

    def _on_message(self, message: "dict[str, Any]") -> None:
        if message.get("op") == "interrupt":
            self._interrupt(message.get("turn"))
        else:
            self._inbox.put(message)

    def _on_end(self) -> None:
        """Nobody is there any more who could take what this process does."""
        os._exit(0)

    def _interrupt(self, turn_id: object) -> None:
        turn = self._current
        if turn is not None and turn.id == turn_id:
            self._interrupts.deliver(lambda: self._current is turn)

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
        self._displays.begin()
        self._streams.begin(request.get("stdin"))
        ran = Ran(status="error", exit_code=INTERNAL_CODE)
        with contextlib.suppress(KeyboardInterrupt), self._interrupts.armed():
            ran = self._shell.run(_code_of(request))
            self._displays.finish()
        ran = self._settled(ran)
        for note in self._displays.notes():
            ran.note(note)
        self._streams.flush()
        if request.get("tell"):
            self._tell(turn, ran)
        if os.getpid() == self._pid:
            self._channel.send(self._done(turn, ran, time.monotonic() - began))
        self._current = None
        return ran.exit_code

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
            "age_seconds": round(limits.age_seconds(), 3),
            "turns": self._turns,
            "directory": introspect.directory(),
        }

    # -- what leaves -----------------------------------------------------------------------------------------------

    def _show(self, shown: "dict[str, Any]") -> None:
        """Send a display, in its place among the output; from any thread."""
        turn = self._threads.turn_of_this(self._current)
        if turn is None or turn is not self._current:
            self._send_late(turn or self._last, {"k": "display", **shown})
            return
        self._streams.flush()
        self._event(turn, "display", shown, in_order=True)

    def _event(self, turn: Turn, kind: str, fields: "dict[str, Any]", *, in_order: bool = False) -> None:
        weight = _weight(fields)
        if weight > turn.room:
            turn.left_out += 1
            return
        turn.room -= weight
        send = self._channel.send_and_wait if in_order else self._channel.send
        with self._interrupts.shielded():  # A number that is taken is a frame that is sent.
            send({"t": "event", "turn": turn.id, "n": turn.next(), "k": kind, **fields})

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
