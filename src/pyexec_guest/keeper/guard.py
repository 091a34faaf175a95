"""The keeper of one execution on the host: prepares what it needs, runs its program, says how that ended."""

import json
import os
import signal
import socket
import time
from typing import Any, cast

from pyexec_guest import log
from pyexec_guest.keeper import linux
from pyexec_guest.keeper.child import Child, StartError
from pyexec_guest.keeper.guarding import REASON_CHARACTERS, Guarding, receive_orders
from pyexec_guest.keeper.guest import CHANNEL, GuestLink
from pyexec_guest.keeper.output import OutputPump
from pyexec_guest.keeper.supervisor import Ending, Supervisor, Usage
from pyexec_guest.keeper.tree import Tree

ORDERS_SECONDS = 30.0
PREPARE_LOG_BYTES = 256 * 1024
PREPARED = "environment.json"
PREPARED_BYTES = 16 * 1024 * 1024
PREPARED_TOLD = ("digest", "python_version", "packages", "notes")


class Guard(Guarding):
    """Guards one execution whose programs are children of this process."""

    def __init__(self, connection: socket.socket, tree: Tree) -> None:
        orders = receive_orders(connection, ORDERS_SECONDS)
        if orders is None:
            raise SystemExit(0)
        super().__init__(orders, connection)
        self._tree = tree
        self._supervisor = Supervisor(self.loop, tree, self.stop, self.on_step)
        self.usage = self._supervisor.usage

    def run(self) -> None:
        """See `Guarding.run`."""
        self.loop.watch_signals({signal.SIGCHLD: self._supervisor.reap, signal.SIGTERM: self._on_terminate})
        super().run()

    def work(self) -> "dict[str, Any]":
        """See `Guarding.work`."""
        return self._prepare() or self._run()

    def abandon(self) -> None:
        """See `Guarding.abandon`."""
        self._tree.kill()

    # -- the stages ------------------------------------------------------------------------------------------------

    def _prepare(self) -> "dict[str, Any] | None":
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

    def _prepare_by(self, step: "dict[str, Any]", pump: OutputPump) -> "dict[str, Any] | None":
        orders = self.orders
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
            return self.describe(Ending(cause="start_failed", reason=str(error)))
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
            return self.describe(ending)
        if self.stop.asked:  # It came after the last moment at which preparing could be ended.
            return self.describe(Ending(cause="cancelled", reason=self.stop.reason))
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

    def _run(self) -> "dict[str, Any]":
        orders = self.orders
        out, err = self.open_pumps()
        timeout: float = orders["timeout"]
        memory_kills = linux.out_of_memory_kills()
        self.usage = self._supervisor.usage = Usage()  # What preparing took is not the program's.
        link = self._link_to_guest(out, err)
        try:
            ending = self._supervisor.run(
                orders["argv"],
                cwd=orders["cwd"],
                env=orders["env"] if link is None else {**orders["env"], CHANNEL: str(link.guests_end)},
                stdin=orders["stdin"],
                deadline=time.monotonic() + timeout if timeout else None,
                pumps=(out, err),
                on_start=self._on_start,
                inherited=link.guests_end if link else None,
            )
        except StartError as error:
            return self.describe(Ending(cause="start_failed", reason=str(error)))
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
        return self.describe(ending)

    def _link_to_guest(self, out: OutputPump, err: OutputPump) -> "GuestLink | None":
        request: dict[str, Any] | None = self.orders.get("guest")
        if request is None:
            return None
        return GuestLink(self.loop, self.folder, request, lambda: [out.catch_up(), err.catch_up()], self.on_display)

    def _on_terminate(self) -> None:
        self.stop.ask("The system asked the keeper to end.")

    def _on_start(self, child: Child) -> None:
        self.on_start(
            {
                "boot": linux.boot_id(),
                "pid": child.pid,
                "start_ticks": linux.start_ticks(child.pid),
                "group": self._tree.group,
                "pipes": [os.fstat(fd).st_ino for fd in (child.stdout, child.stderr)],
            }
        )

    def _prepare_text(self) -> str:
        text = log.read(self.folder, "prepare", 0, PREPARE_LOG_BYTES).data.decode("utf-8", "replace").strip()
        return text[-REASON_CHARACTERS:] or "The environment could not be prepared."
