"""Attempts to have privileges, or to get some, and to make system calls that are on no list."""

import ctypes
import glob
import json
import os
import stat
from contextlib import suppress
from typing import Any

from pyexec_guest.confine import seccomp

_FIELDS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups")
_READ_IMPLIES_EXEC = 0x0400000
# With arguments that a kernel which does not refuse them answers otherwise, where there are such.
_CALLS: "dict[str, tuple[int, ...]]" = {
    "unshare": (0,),
    "setns": (-1, 0),
    "mount": (0, 0, 0, 0, 0),
    "chroot": (0,),
    "bpf": (0, 0, 0),
    "keyctl": (0, -3, 0),
    "add_key": (0, 0, 0, 0, 0),
    "io_uring_setup": (0, 0),
    "perf_event_open": (0, 0, -1, -1, 0),
    "process_vm_readv": (1, 0, 0, 0, 0, 0),
    "open_by_handle_at": (-1, 0, 0),
    "userfaultfd": (-1,),
    "personality": (_READ_IMPLIES_EXEC,),
    "clone3": (0, 0),
    "landlock_create_ruleset": (0, 0, 1),
    "ptrace": (0, 0, 0, 0),
}


def hold() -> "dict[str, Any]":
    """Return what this process and the sandbox's first one may do, and what making oneself another user gives."""
    changed: list[str] = []
    for name, arguments in (("setuid", (0,)), ("setgid", (0,)), ("setresuid", (0, 0, 0)), ("setgroups", ([0],))):
        with suppress(OSError):
            getattr(os, name)(*arguments)
            changed.append(name)
    return {"own": _status("self"), "first": _status("1"), "changed": changed}


def run_as_root() -> "dict[str, Any]":
    """Run a program that is made to run as its owner; return whom it ran as, and which mounts would allow it."""
    ran: dict[str, str] = {}
    for path in sorted(glob.glob("/usr/bin/*") + glob.glob("/usr/sbin/*")):
        with suppress(OSError):
            about = os.stat(path)
            if about.st_mode & stat.S_ISUID and os.access(path, os.X_OK):
                ran[path] = _user_of(path)
                break
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        mounts = [line.split()[4:6] for line in file]
    return {"ran": ran, "mounts": [place for place, options in mounts if "nosuid" not in options.split(",")]}


def _user_of(path: str) -> str:
    """Run a program with nothing to read and nowhere to write; return its users, as the kernel has kept them."""
    pid = os.fork()
    if pid == 0:
        try:
            null = os.open("/dev/null", os.O_RDWR)
            for number in range(3):
                os.dup2(null, number)
            os.closerange(3, 64)
            os.execv(path, [path])  # noqa: S606 - what is tried
        finally:
            os._exit(127)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    users = _status(str(pid))["Uid"]
    os.waitpid(pid, 0)
    return users


def call() -> "dict[str, int]":
    """Make system calls that may lead out, in a process of their own; return the errno of each, 0 where it worked."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(_answers()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    answers: dict[str, int] = json.loads(said)
    return answers


def _answers() -> "dict[str, int]":
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    numbers = seccomp.this_machine().numbers
    answers: dict[str, int] = {}
    for name, arguments in _CALLS.items():
        if name in numbers:
            ctypes.set_errno(0)
            result = libc.syscall(ctypes.c_long(numbers[name]), *(ctypes.c_long(value) for value in arguments))
            answers[name] = ctypes.get_errno() if result == -1 else 0
    return answers


def _status(pid: str) -> "dict[str, str]":
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return {name: fields[name].strip() for name in _FIELDS}
