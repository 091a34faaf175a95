"""What every keeper of an execution does: waits for its turn, has it run, says how it ended."""

import os
import socket
import time
from typing import Any

from pyexec_guest import log, protocol
from pyexec_guest.keeper import turn
from pyexec_guest.keeper.listener import Listener
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.keeper.output import OutputPump
from pyexec_guest.keeper.record import Record
from pyexec_guest.keeper.supervisor import Ending, StopRequest, Usage

QUEUE_LOOK_SECONDS = 2.0
REASON_CHARACTERS = 4000


class Guarding:
    """Guards one execution from its orders to its outcome. Who inherits says in `work` how it is run.

    Args:
        orders: What the server has ordered.
        connection: The server's, which hears of everything first.
    """

    def __init__(self, orders: "dict[str, Any]", connection: socket.socket) -> None:
        self.orders = orders
        self.folder: str = orders["folder"]
        self.loop = Loop()
        self.stop = StopRequest()
        self.usage = Usage()
        self.events = log.EventWriter(self.folder)
        self.listener = Listener(self.loop, self._on_message, connection)
        self.record = Record(self.folder)
        self.started_at: float | None = None
        self.pumps: tuple[OutputPump, OutputPump] | None = None
        self._queue = turn.Queue(orders["queue"], orders["entry"], orders["slots"])
        self._queue_changed = True

    def run(self) -> None:
        """Do it all; returns when the outcome is written."""
        self.listener.open(self.folder)
        self.listener.phase("waiting")
        try:
            outcome = self._wait_turn() or self.work()
        except OSError as error:
            self.abandon()
            outcome = self.describe(Ending(cause="lost", reason=f"The keeper could not go on: {error}."))
        self._write_outcome(outcome)
        next_in_line = self._queue.leave()
        self.listener.close(self.folder)
        for execution_id in next_in_line:
            try:
                turn.wake(os.path.dirname(self.folder), execution_id)
            except OSError:
                continue  # It has ended, or will look by itself.

    def work(self) -> "dict[str, Any]":
        """Run it; return the outcome."""
        raise NotImplementedError

    def abandon(self) -> None:
        """End whatever of it runs, because nothing can be written any more."""
        raise NotImplementedError

    def _wait_turn(self) -> "dict[str, Any] | None":
        look_at = 0.0
        while not self.stop.asked:
            if self._queue_changed or time.monotonic() >= look_at:
                self._queue_changed = False
                position = self._queue.position()
                if position == 0:
                    return None
                look_at = time.monotonic() + QUEUE_LOOK_SECONDS + position * 0.01
            self.loop.run_until(lambda: self.stop.asked or self._queue_changed, look_at)
        return self.cancelled()

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
        self.started_at = time.time()
        self.record.started({**started, "started_at": self.started_at})
        self.events.note("status", self.started_at, status="running", pid=started["pid"])
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
        usage = self.usage
        outcome: dict[str, Any] = {
            "v": protocol.VERSION,
            "kind": ending.cause,
            "reason": ending.reason,
            "stopped_by": ending.stopped_by,
            "started_at": self.started_at,
            "ended_at": time.time(),
            "leftover_processes": ending.leftovers,
            "user_cpu_seconds": round(usage.user_seconds, 6),
            "system_cpu_seconds": round(usage.system_seconds, 6),
            "peak_rss_bytes": usage.peak_rss_bytes,
        }
        if self.started_at is not None:  # Codes of what only prepared the run are not the program's.
            outcome |= {"exit_code": ending.exit_code, "signal": ending.signal}
        return outcome | {f"{pump.name}_bytes": pump.total for pump in self.pumps or ()}

    def _write_outcome(self, outcome: "dict[str, Any]") -> None:
        self.events.note("status", outcome["ended_at"], status="ended", outcome=outcome["kind"])
        self.events.close()
        self.record.ended(outcome)


def receive_orders(connection: socket.socket, timeout: float) -> "dict[str, Any] | None":
    """Return the orders, the first frame of the server that asked for a keeper; None when it is gone before that."""
    connection.settimeout(timeout)
    decoder = protocol.Decoder(protocol.MAX_FRAME)
    while data := connection.recv(1024 * 1024):
        messages = decoder.feed(data)
        if messages:
            return messages[0]
    return None
