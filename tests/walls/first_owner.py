"""Owns a fork server and a sandbox until it has handed them over: `first_owner.py <descriptor of a socket>`."""

import signal
import socket
import sys

from pyexec.domain.limits import SandboxLimits
from pyexec.processes.outerwalls import put_up
from pyexec.sandbox.forks import Entrances
from pyexec.walls.bubblewrap.boxes import order_for
from pyexec.walls.bubblewrap.contents import USERS, plan_for
from pyexec.walls.bubblewrap.program import find_bubblewrap
from tests.walls.bubblewrap import INTERPRETER_NEEDS, inside


def main(fd: int) -> None:
    plan = plan_for(inside(None), find_bubblewrap(INTERPRETER_NEEDS.get("PATH")), USERS)
    server = put_up(plan, (), INTERPRETER_NEEDS, 30)
    sandbox = server.fork(order_for(SandboxLimits(), 1), Entrances(), 10)
    sandbox.wait_ready(10)
    with socket.socket(fileno=fd) as heir:
        descriptors = [
            server.control.fileno(),
            server.first,
            sandbox.socket.fileno(),
            sandbox.first,
            sandbox.news,
            *sandbox.output,
        ]
        socket.send_fds(heir, [b"x"], descriptors)
        signal.pause()


if __name__ == "__main__":
    main(int(sys.argv[1]))
