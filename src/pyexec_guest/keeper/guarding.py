"""What every keeper of an execution does: waits for its turn, has it run, says how it ended."""

import json
import os
import socket
import time
from contextlib import suppress
from typing import Any, cast

from pyexec_guest import log, protocol
from pyexec_guest.keeper import turn
from pyexec_guest.keeper.child import StartError
from pyexec_guest.keeper.listener import Client, Listener
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.keeper.output import OutputPump
from pyexec_guest.keeper.record import Record
from pyexec_guest.keeper.supervisor import Ending, StopRequest, Usage

LOCK = "lock"
QUEUE_LOOK_SECONDS = 2.0
REASON_CHARACTERS = 4000
PREPARE_LOG_BYTES = 256 * 1024
PREPARED = "environment.json"
PREPARED_BYTES = 16 * 1024 * 1024
PREPARED_TOLD = ("digest", "python_version", "packages", "notes")
_GULP_BYTES = 1024 * 1024


class Guarding:
    """Guards one execution from its orders to its outcome. Who inherits says in `work` how it is run.

    Args:
        orders: What the server has ordered.
        connection: The server's, which hears of everything first.
        loop: Where something that it guards is listened to already.
        events: Where something has been noted already, as it runs.
        said: Where more than the orders has been read on the connection.
    """

    def __init__(
        self,
        orders: "dict[str, Any]",
        connection: socket.socket,
        *,
        loop: "Loop | None" = None,
        events: "log.EventWriter | None" = None,
        said: "Orders | None" = None,
    ) -> None:
        self.orders = orders
        self.folder: str = orders["folder"]
        self.loop = Loop() if loop is None else loop
        self.stop = StopRequest()
        self.usage = Usage()
        self.events = log.EventWriter(None) if events is None else events
        self.events.open(self.folder)
        self._waits: tuple[str, int] | None = None
        # Before anybody is told that it is guarded: there may be no room.
        self.record = Record(self.folder, has_begun=events is not None)
        first = Client(connection, said.decoder if said is not None else None)
        self.listener = Listener(self.loop, self._on_message, first, self.waits)
        self.started_at: float | None = None
        self._started: dict[str, Any] | None = None
        self.pumps: tuple[OutputPump, OutputPump] | None = None
        # One after the other: who waits for a session takes nobody's place among those who run.
        self._lines = [turn.Queue(folder, entry, slots, self._join) for folder, entry, slots in orders["lines"]]
        self._queue_changed = True
        for message in said.left if said is not None else ():
            self._on_message(message)

    def run(self) -> None:
        """Do it all; returns when the outcome is written."""
        try:
            self.listener.open(self.folder)
            self.listener.phase("waiting")
            outcome = self.wait_turn() or self.work()
        except OSError as error:
            self.abandon()
            outcome = self.describe(Ending(cause="lost", reason=f"The keeper could not go on: {error}."))
        try:
            self._write_outcome(outcome)
        finally:  # Its folder may have been removed.
            for line in self._lines:
                line.leave()
        next_in_line = [execution_id for line in self._lines for execution_id in line.next()]
        self.listener.ended({"outcome": outcome, "started": self._started, **self.told()})
        self.listener.close()
        for execution_id in next_in_line:
            try:
                turn.wake(os.path.dirname(self.folder), execution_id)
            except OSError:
                continue  # It has ended, or will look by itself.

    def work(self) -> "dict[str, Any]":
        """Run it; return the outcome."""
        raise NotImplementedError

    def told(self) -> "dict[str, Any]":
        """Return what else whoever waits for the end is told with the outcome; all of it is in the folder too."""
        return {}

    def abandon(self) -> None:
        """End whatever of it runs, because nothing can be written any more."""
        raise NotImplementedError

    def on_line(self) -> None:
        """Take note that others come first."""

    def waits(self) -> "tuple[str, int] | None":
        """Return what it waits for (`turn`, or `session` for its turn in one), and about how many are before it."""
        return self._waits

    def _join(self, folder: str) -> str:
        return turn.take_place(folder, os.path.join(self.folder, LOCK), self.orders["id"])

    def wait_turn(self) -> "dict[str, Any] | None":
        """Wait until nobody comes first; return the outcome when it is to end before that."""
        look_at = 0.0
        lines = list(self._lines)
        while not self.stop.asked:
            if self._queue_changed or time.monotonic() >= look_at:
                self._queue_changed = False
                position = 0
                while lines and (position := lines[0].position()) == 0:
                    del lines[0]
                if not lines:
                    self._waits = None
                    return None
                self._waits = ("session" if len(lines) > 1 else "turn", position)
                self.on_line()
                look_at = time.monotonic() + QUEUE_LOOK_SECONDS + position * 0.01
            self.loop.run_until(lambda: self.stop.asked or self._queue_changed, look_at)
        return self.cancelled()

    # -- preparing -------------------------------------------------------------------------------------------------

    def prepare(self) -> "dict[str, Any] | None":
        """Run what makes its environment; return the outcome when that fails."""
        steps: list[dict[str, Any]] = self.orders["prepare"]
        if not steps:
            return None
        self.listener.phase("preparing")
        writer = log.StreamWriter(self.folder, "prepare", PREPARE_LOG_BYTES, PREPARE_LOG_BYTES)
        pump = OutputPump(writer, "prepare", self.loop)
        try:
            for step in steps:
                outcome = self._prepare_by(step, pump)
                if outcome is not None:
                    return outcome
        finally:
            pump.close()
        if not self._use_prepared():
            reason = "What was made for it cannot be read, so it was not started."
            return self.describe(Ending(cause="environment_failed", reason=reason))
        return None

    def say_preparing(self, text: str) -> None:
        """Tell who waits for it what is still being done before it can start."""
        self.listener.phase("preparing")
        with suppress(OSError):
            log.add_line(self.folder, "prepare", text)

    def run_step(self, step: "dict[str, Any]", pump: OutputPump, deadline: float) -> Ending:
        """Run one program of those, with its output going to the pump; tell how it ended.

        Raises:
            StartError: It could not be started.
        """
        raise NotImplementedError

    def _prepare_by(self, step: "dict[str, Any]", pump: OutputPump) -> "dict[str, Any] | None":
        seconds: float = self.orders["prepare_timeout"]
        try:
            ending = self.run_step(step, pump, time.monotonic() + seconds)
        except StartError as error:
            return self.describe(Ending(cause="start_failed", reason=str(error)))
        if ending.cause == "timed_out":
            ending.cause = "environment_failed"
            ending.reason = f"Installing what it needs took longer than {seconds:g} s."
        elif ending.cause is None and ending.exit_code != 0:
            ending.cause = "environment_failed"
            ending.reason = (
                f"The program that makes the environment was ended by {ending.signal}."
                if ending.signal
                else self._prepare_text()
            )
        if ending.cause is not None:
            ending.leftovers = []  # Those of the user's program are meant.
            return self.describe(ending)
        if self.stop.asked:  # It came after the last moment at which preparing could be ended.
            return self.cancelled()
        return None

    def _use_prepared(self) -> bool:
        """Take over the interpreter that preparing has found or made, if any; tell whether its answer makes sense."""
        try:
            with open(os.path.join(self.folder, PREPARED), "rb") as file:
                answer: object = json.loads(file.read(PREPARED_BYTES))
        except FileNotFoundError:
            return True
        except (OSError, ValueError, RecursionError):
            return False
        if not isinstance(answer, dict):
            return False
        prepared = cast("dict[str, Any]", answer)
        self.events.note("environment", time.time(), **{name: prepared.get(name) for name in PREPARED_TOLD})
        python = prepared.get("python")
        if isinstance(python, str):
            env = self.orders["env"]
            self.orders["argv"][self.orders["python_at"]] = python
            path = [os.path.dirname(python), env.get("PATH", "")]
            self.orders["env"] = {**env, "PATH": os.pathsep.join(filter(None, path))}
        return True

    def _prepare_text(self) -> str:
        text = log.read(self.folder, "prepare", 0, PREPARE_LOG_BYTES).data.decode("utf-8", "replace").strip()
        return text[-REASON_CHARACTERS:] or "The environment could not be prepared."

    # -- what happens meanwhile ------------------------------------------------------------------------------------

    def _on_message(self, message: "dict[str, Any]") -> None:
        if message.get("op") == "turn":
            self._queue_changed = True
        elif message.get("op") == "stop":
            kill = message.get("mode") == "kill"
            reason = str(message.get("reason") or "")[:REASON_CHARACTERS]
            self.stop.ask(reason or f"It was {'killed' if kill else 'cancelled'} on request.", kill=kill)

    def on_start(self, started: "dict[str, Any]") -> None:
        """Note that the program runs, with what is needed to find it should this process be killed."""
        now = time.time()
        note_running(self.events, now, started)
        self.take_start({**started, "started_at": now})

    def take_start(self, started: "dict[str, Any]") -> None:
        """Do the same where the event is noted already; `started_at` says when that was."""
        self.started_at = started["started_at"]
        self._started = started
        self.record.started(started)
        self.listener.phase("running")

    def on_display(self, kind: str) -> None:
        """Note that something was shown."""
        self.events.note("display", time.time(), display=kind)
        self.listener.output()

    def on_step(self, step: str, signal_name: "str | None") -> None:
        """Note a step on the way to its end."""
        self.events.note("status", time.time(), status=step, signal=signal_name)
        self.listener.phase(step)

    def open_pumps(self) -> "tuple[OutputPump, OutputPump]":
        """Return what takes its output into the log."""
        limits = (self.orders["head_bytes"], self.orders["tail_bytes"])
        writers = [log.StreamWriter(self.folder, name, *limits) for name in log.STREAMS]
        out, err = (
            OutputPump(writer, name, self.loop, self._on_output)
            for writer, name in zip(writers, log.STREAMS, strict=True)
        )
        self.pumps = (out, err)
        return self.pumps

    def _on_output(self, stream: str, at: int) -> None:
        self.events.output(stream, at, time.time())
        self.listener.output()

    # -- what is written down --------------------------------------------------------------------------------------

    def cancelled(self) -> "dict[str, Any]":
        """Return the outcome of what was ended before it began."""
        return self.describe(Ending(cause="cancelled", reason=self.stop.reason))

    def describe(self, ending: Ending) -> "dict[str, Any]":
        """Return the outcome."""
        return outcome_of(ending, self.usage, self.started_at, {pump.name: pump.total for pump in self.pumps or ()})

    def _write_outcome(self, outcome: "dict[str, Any]") -> None:
        note_ended(self.events, outcome)
        self.events.close()
        self.record.ended(outcome)


def outcome_of(ending: Ending, usage: Usage, started_at: "float | None", printed: "dict[str, int]") -> "dict[str, Any]":
    """Return how an execution ended, as it is written down; `printed` is how many bytes each stream has had."""
    outcome: dict[str, Any] = {
        "v": protocol.VERSION,
        "kind": ending.cause,
        "reason": ending.reason,
        "stopped_by": ending.stopped_by,
        "started_at": started_at,
        "ended_at": time.time(),
        "leftover_processes": ending.leftovers,
        "user_cpu_seconds": round(usage.user_seconds, 6),
        "system_cpu_seconds": round(usage.system_seconds, 6),
        "peak_rss_bytes": usage.peak_rss_bytes,
    }
    if started_at is not None:  # Codes of what only prepared the run are not the program's.
        outcome |= {"exit_code": ending.exit_code, "signal": ending.signal}
    return outcome | {f"{name}_bytes": count for name, count in printed.items()}


def note_running(events: log.EventWriter, now: float, started: "dict[str, Any]") -> None:
    """Note in the event log that the program runs."""
    events.note("status", now, status="running", pid=started["pid"])


def note_ended(events: log.EventWriter, outcome: "dict[str, Any]") -> None:
    """Note in the event log that it has ended."""
    events.note("status", outcome["ended_at"], status="ended", outcome=outcome["kind"])


class Orders:
    """What a server that asked for a keeper says first, frame by frame.

    Args:
        connection: To it.
        begun: What has arrived already.

    Attributes:
        decoder: Holds what has arrived of the next frame.
        left: What has arrived and has not been asked for.
    """

    def __init__(self, connection: socket.socket, begun: bytes = b"") -> None:
        self._connection = connection
        self.decoder = protocol.Decoder(protocol.MAX_FRAME)
        self.left = self.decoder.feed(begun)

    def next(self, timeout: float) -> "dict[str, Any] | None":
        """Return the next frame; None when the server is gone before that.

        Raises:
            TimeoutError: It says nothing for so long.
        """
        if not self.left:
            self._connection.settimeout(timeout)
        while not self.left and (data := self._connection.recv(_GULP_BYTES)):
            self.left += self.decoder.feed(data)
        return self.left.pop(0) if self.left else None
