"""The keeper of one execution on the host: prepares what it needs, runs its program, says how that ended."""

import os
import signal
import socket
import time
from typing import Any

from pyexec_guest.keeper import linux
from pyexec_guest.keeper.ahead import ForkedAhead
from pyexec_guest.keeper.child import Child, StartError
from pyexec_guest.keeper.guarding import Guarding, Orders
from pyexec_guest.keeper.guest import CHANNEL, GuestLink, turn_request
from pyexec_guest.keeper.output import OutputPump
from pyexec_guest.keeper.supervisor import Ending, Supervisor, Usage
from pyexec_guest.keeper.tree import Tree

ORDERS_SECONDS = 30.0


class Guard(Guarding):
    """Guards one execution whose programs are children of this process."""

    def __init__(self, connection: socket.socket, tree: Tree, ahead: "ForkedAhead | None") -> None:
        orders = Orders(connection).next(ORDERS_SECONDS)
        if orders is None:
            raise SystemExit(0)
        super().__init__(orders, connection)
        self._tree = tree
        self._supervisor = Supervisor(self.loop, tree, self.stop, self.on_step, ahead)
        self.usage = self._supervisor.usage

    def run(self) -> None:
        """See `Guarding.run`."""
        self.loop.watch_signals({signal.SIGCHLD: self._supervisor.reap, signal.SIGTERM: self._on_terminate})
        super().run()

    def work(self) -> "dict[str, Any]":
        """See `Guarding.work`."""
        return self.prepare() or self._run()

    def on_line(self) -> None:
        """See `Guarding.on_line`: there may be hundreds of them."""
        self._supervisor.let_go()

    def abandon(self) -> None:
        """See `Guarding.abandon`."""
        self._tree.kill()

    # -- the stages ------------------------------------------------------------------------------------------------

    def run_step(self, step: "dict[str, Any]", pump: OutputPump, deadline: float) -> Ending:
        """See `Guarding.run_step`."""
        return self._supervisor.run(
            step["argv"],
            cwd=self.orders["cwd"],
            env=step["env"],
            stdin=step["stdin"],
            deadline=deadline,
            pumps=(pump, pump),
        )

    def _run(self) -> "dict[str, Any]":
        orders = self.orders
        out, err = self.open_pumps()
        timeout: float = orders["timeout"]
        self.usage = self._supervisor.usage = Usage()  # What preparing took is not the program's.
        link = self._link_to_guest(out, err)
        memory_kills = 0

        def started(child: Child) -> None:
            nonlocal memory_kills
            self._on_start(child)
            memory_kills = linux.out_of_memory_kills()

        try:
            ending = self._supervisor.run(
                orders["argv"],
                cwd=orders["cwd"],
                env=orders["env"] if link is None else {**orders["env"], CHANNEL: str(link.guests_end)},
                stdin=orders["stdin"],
                deadline=time.monotonic() + timeout if timeout else None,
                pumps=(out, err),
                on_start=started,
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
        return GuestLink(
            self.loop,
            self.folder,
            turn_request(request),
            lambda: [out.catch_up(), err.catch_up()],
            self.on_display,
        )

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
