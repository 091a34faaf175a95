"""The keeper of one execution: waits for its turn, runs it, says how it ended."""

import json
import os
import signal
import socket
import time
from typing import Any, cast

from pyexec_guest import log, protocol
from pyexec_guest.keeper import linux, turn
from pyexec_guest.keeper.child import Child, StartError
from pyexec_guest.keeper.guest import CHANNEL, GuestLink
from pyexec_guest.keeper.listener import Listener
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.keeper.output import OutputPump
from pyexec_guest.keeper.supervisor import Ending, StopRequest, Supervisor, Usage
from pyexec_guest.keeper.tree import Tree

ORDERS_SECONDS = 30.0
QUEUE_LOOK_SECONDS = 2.0
PREPARE_LOG_BYTES = 256 * 1024
STARTED = "started.json"
OUTCOME = "outcome.json"
PREPARED = "environment.json"
PREPARED_BYTES = 16 * 1024 * 1024
PREPARED_TOLD = ("digest", "python_version", "packages", "notes")
RESERVE_BYTES = 16 * 1024
REASON_CHARACTERS = 4000


class Guard:
    """Guards one execution from its orders to its outcome."""

    def __init__(self, connection: socket.socket, tree: Tree) -> None:
        self._orders = _receive_orders(connection)
        self.folder: str = self._orders["folder"]
        self._loop = Loop()
        self._stop = StopRequest()
        self._events = log.EventWriter(self.folder)
        self._queue = turn.Queue(self._orders["queue"], self._orders["entry"], self._orders["slots"])
        self._queue_changed = True
        self._listener = Listener(self._loop, self._on_message, connection)
        self._tree = tree
        self._supervisor = Supervisor(self._loop, self._tree, self._stop, self._on_step)
        self._started_at: float | None = None
        self._pumps: tuple[OutputPump, OutputPump] | None = None

    def run(self) -> None:
        """Do it all; returns when the outcome is written."""
        self._reserve()
        self._loop.watch_signals({signal.SIGCHLD: self._supervisor.reap, signal.SIGTERM: self._on_terminate})
        self._listener.open(self.folder)
        self._listener.phase("waiting")
        try:
            outcome = self._wait_turn() or self._prepare() or self._run()
        except OSError as error:
            self._tree.kill()
            outcome = self._describe(Ending(cause="lost", reason=f"The keeper could not go on: {error}."))
        self._write_outcome(outcome)
        next_in_line = self._queue.leave()
        self._listener.close(self.folder)
        for execution_id in next_in_line:
            try:
                turn.wake(os.path.dirname(self.folder), execution_id)
            except OSError:
                continue  # It has ended, or will look by itself.

    # -- the stages ------------------------------------------------------------------------------------------------

    def _wait_turn(self) -> "dict[str, Any] | None":
        look_at = 0.0
        while not self._stop.asked:
            if self._queue_changed or time.monotonic() >= look_at:
                self._queue_changed = False
                position = self._queue.position()
                if position == 0:
                    return None
                look_at = time.monotonic() + QUEUE_LOOK_SECONDS + position * 0.01
            self._loop.run_until(lambda: self._stop.asked or self._queue_changed, look_at)
        return self._describe(Ending(cause="cancelled", reason=self._stop.reason))

    def _prepare(self) -> "dict[str, Any] | None":
        steps: list[dict[str, Any]] = self._orders["prepare"]
        if not steps:
            return None
        self._listener.phase("preparing")
        writer = log.StreamWriter(self.folder, "prepare", PREPARE_LOG_BYTES, PREPARE_LOG_BYTES)
        pump = OutputPump(writer, "prepare", self._loop)
        try:
            for step in steps:
                outcome = self._prepare_by(step, pump)
                if outcome is not None:
                    return outcome
        finally:
            pump.close()
        if not self._use_prepared():
            reason = "What was made for it cannot be read, so it was not started."
            return self._describe(Ending(cause="environment_failed", reason=reason))
        return None

    def _prepare_by(self, step: "dict[str, Any]", pump: OutputPump) -> "dict[str, Any] | None":
        orders = self._orders
        try:
            ending = self._supervisor.run(
                step["argv"],
                cwd=orders["cwd"],
                env=step["env"],
                stdin=step["stdin"],
                deadline=time.monotonic() + orders["prepare_timeout"],
                pumps=(pump, pump),
            )
        except StartError as error:
            return self._describe(Ending(cause="start_failed", reason=str(error)))
        if ending.cause == "timed_out":
            ending.cause = "environment_failed"
            ending.reason = f"Installing what it needs took longer than {orders['prepare_timeout']:g} s."
        elif ending.cause is None and ending.exit_code != 0:
            ending.cause = "environment_failed"
            ending.reason = (
                f"The program that makes the environment was ended by {ending.signal}."
                if ending.signal
                else self._prepare_text()
            )
        if ending.cause is not None:
            ending.leftovers = []  # Those of the user's program are meant.
            return self._describe(ending)
        if self._stop.asked:  # It came after the last moment at which preparing could be ended.
            return self._describe(Ending(cause="cancelled", reason=self._stop.reason))
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
        self._events.note("environment", time.time(), **{name: prepared.get(name) for name in PREPARED_TOLD})
        python = prepared.get("python")
        if isinstance(python, str):
            env = self._orders["env"]
            self._orders["argv"][self._orders["python_at"]] = python
            path = [os.path.dirname(python), env.get("PATH", "")]
            self._orders["env"] = {**env, "PATH": os.pathsep.join(filter(None, path))}
        return True

    def _run(self) -> "dict[str, Any]":
        orders = self._orders
        limits = (orders["head_bytes"], orders["tail_bytes"])
        writers = [log.StreamWriter(self.folder, name, *limits) for name in log.STREAMS]
        out, err = (
            OutputPump(writer, name, self._loop, self._on_output)
            for writer, name in zip(writers, log.STREAMS, strict=True)
        )
        self._pumps = (out, err)
        timeout: float = orders["timeout"]
        memory_kills = linux.out_of_memory_kills()
        self._supervisor.usage = Usage()  # What preparing took is not the program's.
        link = self._link_to_guest(out, err)
        try:
            ending = self._supervisor.run(
                orders["argv"],
                cwd=orders["cwd"],
                env=orders["env"] if link is None else {**orders["env"], CHANNEL: str(link.guests_end)},
                stdin=orders["stdin"],
                deadline=time.monotonic() + timeout if timeout else None,
                pumps=self._pumps,
                on_start=self._on_start,
                inherited=link.guests_end if link else None,
            )
        except StartError as error:
            return self._describe(Ending(cause="start_failed", reason=str(error)))
        finally:
            if link is not None:
                link.close()
            out.close()
            err.close()
        if ending.cause == "timed_out":
            ending.reason = f"It ran longer than {timeout:g} s."
        elif ending.cause is None:
            ending.cause = "signalled" if ending.signal else "exited"
            if ending.signal == "SIGKILL" and linux.out_of_memory_kills() > memory_kills:
                ending.reason = "Meanwhile the kernel ended a process of this machine for want of memory."
        return self._describe(ending)

    def _link_to_guest(self, out: OutputPump, err: OutputPump) -> "GuestLink | None":
        request: dict[str, Any] | None = self._orders.get("guest")
        if request is None:
            return None
        return GuestLink(self._loop, self.folder, request, lambda: [out.catch_up(), err.catch_up()], self._on_display)

    # -- what happens meanwhile ------------------------------------------------------------------------------------

    def _on_message(self, message: "dict[str, Any]") -> None:
        if message.get("op") == "turn":
            self._queue_changed = True
        elif message.get("op") == "stop":
            kill = message.get("mode") == "kill"
            reason = str(message.get("reason") or "")[:REASON_CHARACTERS]
            self._stop.ask(reason or f"It was {'killed' if kill else 'cancelled'} on request.", kill=kill)

    def _on_terminate(self) -> None:
        self._stop.ask("The system asked the keeper to end.")

    def _on_start(self, child: Child) -> None:
        self._started_at = time.time()
        started = {
            "boot": linux.boot_id(),
            "pid": child.pid,
            "start_ticks": linux.start_ticks(child.pid),
            "started_at": self._started_at,
            "group": self._tree.group,
            "pipes": [os.fstat(fd).st_ino for fd in (child.stdout, child.stderr)],
        }
        self._write_reserved(STARTED, started)
        self._events.note("status", self._started_at, status="running", pid=child.pid)
        self._listener.phase("running")

    def _on_output(self, stream: str, at: int) -> None:
        self._events.output(stream, at, time.time())
        self._listener.output()

    def _on_display(self, kind: str) -> None:
        self._events.note("display", time.time(), display=kind)
        self._listener.output()

    def _on_step(self, step: str, signal_name: "str | None") -> None:
        self._events.note("status", time.time(), status=step, signal=signal_name)
        self._listener.phase(step)

    # -- what is written down --------------------------------------------------------------------------------------

    def _prepare_text(self) -> str:
        text = log.read(self.folder, "prepare", 0, PREPARE_LOG_BYTES).data.decode("utf-8", "replace").strip()
        return text[-REASON_CHARACTERS:] or "The environment could not be prepared."

    def _describe(self, ending: Ending) -> "dict[str, Any]":
        usage = self._supervisor.usage
        outcome: dict[str, Any] = {
            "v": protocol.VERSION,
            "kind": ending.cause,
            "reason": ending.reason,
            "stopped_by": ending.stopped_by,
            "started_at": self._started_at,
            "ended_at": time.time(),
            "leftover_processes": ending.leftovers,
            "user_cpu_seconds": round(usage.user_seconds, 6),
            "system_cpu_seconds": round(usage.system_seconds, 6),
            "peak_rss_bytes": usage.peak_rss_bytes,
        }
        if self._started_at is not None:  # Codes of what only prepared the run are not the program's.
            outcome |= {"exit_code": ending.exit_code, "signal": ending.signal}
        return outcome | {f"{pump.name}_bytes": pump.total for pump in self._pumps or ()}

    def _reserve(self) -> None:
        """Take the room for what must be written on a full disk too."""
        for name in (STARTED, OUTCOME):
            with open(os.path.join(self.folder, f"{name}.part"), "wb", opener=_private) as file:
                file.write(b" " * RESERVE_BYTES)

    def _write_reserved(self, name: str, value: "dict[str, Any]") -> None:
        """Write into the room that was taken, and give it its name in one step."""
        part = os.path.join(self.folder, f"{name}.part")
        with open(part, "r+b") as file:
            file.write(json.dumps(value, separators=(",", ":")).encode("ascii"))
            file.truncate()
        os.replace(part, os.path.join(self.folder, name))

    def _write_outcome(self, outcome: "dict[str, Any]") -> None:
        self._events.note("status", outcome["ended_at"], status="ended", outcome=outcome["kind"])
        self._events.close()
        self._write_reserved(OUTCOME, outcome)


def _receive_orders(connection: socket.socket) -> "dict[str, Any]":
    """Read the orders, the first frame of the server that asked for this keeper."""
    connection.settimeout(ORDERS_SECONDS)
    decoder = protocol.Decoder(protocol.MAX_FRAME)
    while True:
        data = connection.recv(1024 * 1024)
        if not data:
            raise SystemExit(0)  # The server is gone before it said what to do.
        messages = decoder.feed(data)
        if messages:
            return messages[0]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
