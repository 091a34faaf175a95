"""A fork server whose forks leave a step out, or take one differently: which ones, stands in a file when they are made.

It is started as the fork server is, and it lies with the tests alone.
"""

import os
import random
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

GUEST = "/opt/pyexec/guest"
HOLE = "/opt/pyexec/hole"

sys.path.append(GUEST)

from pyexec_guest.confine import bpf, kernel, policy, privileges, seccomp  # noqa: E402
from pyexec_guest.confine import limits as its_limits  # noqa: E402
from pyexec_guest.confine import namespaces as its_namespaces  # noqa: E402
from pyexec_guest.forkserver import child as its_child  # noqa: E402
from pyexec_guest.forkserver import randomness  # noqa: E402
from pyexec_guest.forkserver import server as its_server  # noqa: E402

child: Any = its_child
limits: Any = its_limits
namespaces: Any = its_namespaces
server: Any = its_server


def nothing(*_args: Any, **_named: Any) -> None:
    """Stand in for a step that is left out."""


def keep(*flags: int) -> None:
    """Stay in namespaces of these kinds."""
    unshare = namespaces.unshare
    taken = sum(flags)
    namespaces.unshare = lambda asked: unshare(asked & ~taken)


def whole_proc() -> None:
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)


def soft_limits() -> None:
    resource: Any = limits.resource
    setrlimit = resource.setrlimit
    limits.put_on = lambda asked: [
        setrlimit(kind, (value, resource.getrlimit(kind)[1]))
        for kind, value in (
            (resource.RLIMIT_DATA, asked.data),
            (resource.RLIMIT_NPROC, asked.processes),
            (resource.RLIMIT_NOFILE, asked.open_files),
            (resource.RLIMIT_FSIZE, asked.file_size),
        )
    ]


def internet() -> seccomp.Filter:
    """Return a filter that lets sockets of the internet be made."""
    machine = seccomp.this_machine()
    rules = dict(policy.sandbox_policy(machine.numbers))
    families: dict[int, int] = {1: policy.ALLOW, 2: policy.ALLOW, 10: policy.ALLOW}
    rules[machine.numbers["socket"]] = policy.Choice(0, policy.fail_with(97), families)
    return seccomp.Filter(bpf.assemble(rules, machine.audit, x32=machine.x32))


def writable() -> None:
    mount = namespaces.mount_memory
    mount("/usr/local", size=1 << 20, files=10, mode=0o777, owner=0, programs=False)


class Holes:
    """What is done to a fork on its way; its own steps follow."""

    @staticmethod
    def no_filter() -> None:
        seccomp.Filter.put_on = nothing

    @staticmethod
    def network() -> None:
        keep(kernel.CLONE_NEWNET)

    @staticmethod
    def queues() -> None:
        keep(kernel.CLONE_NEWIPC)

    @staticmethod
    def proc() -> None:
        namespaces.mount_own_processes = whole_proc

    @staticmethod
    def capabilities() -> None:
        privileges.drop_all = nothing

    @staticmethod
    def setuid() -> None:
        namespaces.MS_NOSUID = 0

    @staticmethod
    def randomness() -> None:
        randomness.begin_anew = lambda: random.seed(1)

    @staticmethod
    def descriptors() -> None:
        child.close_from = nothing

    @staticmethod
    def limits() -> None:
        soft_limits()

    @staticmethod
    def writing() -> None:
        become = namespaces.leave_all_but_user

        def leave() -> None:
            become()
            writable()

        namespaces.leave_all_but_user = leave


def main() -> None:
    enter = server.enter
    unshare = server.unshare
    setns = server.setns

    def hole() -> str:
        with open(HOLE, encoding="ascii") as file:
            return file.read()

    def entered(order: Any, descriptors: Any, own: Any) -> Any:
        for name in hole().split():
            getattr(Holes, name, nothing)()
        if hole() == "internet":
            keep(kernel.CLONE_NEWNET)
            own = replace(own, sandbox_filter=internet())
        enter(order, descriptors, own)

    server.enter = entered
    server.unshare = lambda flags: None if hole() == "one_tree" else unshare(flags)
    server.setns = lambda fd, kind: None if hole() == "one_tree" else setns(fd, kind)
    server.main(int(sys.argv[1]), sys.argv[2], [])


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
    os._exit(0)
