"""Filters of system calls: built once, put on by each sandbox."""

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass

from pyexec_guest.confine.bpf import Instruction, assemble, encode
from pyexec_guest.confine.kernel import prctl_pointer
from pyexec_guest.confine.policy import reaper_policy, sandbox_policy
from pyexec_guest.confine.syscalls import AARCH64, X86_64

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2


@dataclass(frozen=True)
class Machine:
    """A processor architecture that there are filters for; one that is not `proven` has never been tried."""

    name: str
    audit: int
    numbers: "Mapping[str, int]"
    x32: bool
    proven: bool


MACHINES = {
    machine.name: machine
    for machine in (
        Machine("x86_64", 0xC000003E, X86_64, x32=True, proven=True),
        Machine("aarch64", 0xC00000B7, AARCH64, x32=False, proven=False),
    )
}


def this_machine() -> Machine:
    """Return the architecture of this process.

    Raises:
        LookupError: There are no filters for it.
    """
    name = os.uname().machine
    if name not in MACHINES:
        raise LookupError(f"There is no filter of system calls for {name}, only for {', '.join(MACHINES)}.")
    return MACHINES[name]


def sandbox_program(machine: Machine) -> "list[Instruction]":
    """Return the filter of everything that runs in a sandbox."""
    return assemble(sandbox_policy(machine.numbers), machine.audit, x32=machine.x32)


def reaper_program(machine: Machine) -> "list[Instruction]":
    """Return the filter of a sandbox's first process."""
    return assemble(reaper_policy(machine.numbers), machine.audit, x32=machine.x32)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class Filter:
    """A filter that is ready to be put on."""

    def __init__(self, program: "list[Instruction]") -> None:
        self._bytes = encode(program)
        self._program = _Program(len(program), self._bytes)

    def put_on(self) -> None:
        """Filter the system calls of this thread and of all that come from it from now on, for good.

        Raises:
            OSError: The kernel refuses; it does without no_new_privs.
        """
        prctl_pointer(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, self._program)
