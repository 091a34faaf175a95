"""Attempts to see, reach or change what is not the sandbox's."""

import errno
import os
import random
import secrets
import socket
import stat
import tempfile
import uuid
from contextlib import suppress
from typing import Any

FOLDERS = ("/work", "/tmp", "/dev/shm")  # noqa: S108 - inside
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_OF_THE_FIRST = ("environ", "mem", "maps", "fd", "root", "cwd", "exe", "ns/mnt")
_ELSEWHERE = ("/", "/etc", "/opt", "/opt/pyexec", "/proc/self", "/run", "/sys", "/usr/local", "/usr/share", "/var/tmp")  # noqa: S108
_CONNECT_SECONDS = 0.5
_KEPT: "list[socket.socket]" = []


def connect(targets: "list[tuple[str, str, Any]]") -> "list[str]":
    """Connect to each (family, kind, address); return `connected`, or the name of an errno. `@` stands for a NUL."""
    return [_connect(*target) for target in targets]


def _connect(family: str, kind: str, address: "Any") -> str:
    try:
        with socket.socket(getattr(socket, family), getattr(socket, kind)) as connection:
            connection.settimeout(_CONNECT_SECONDS)
            connection.connect(address.replace("@", "\0") if isinstance(address, str) else tuple(address))
            connection.send(b"x")
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return "connected"


def make_sockets(families: "list[int]") -> "list[int]":
    """Make a socket of each family and kind; return the families of which one could be made."""
    made: list[int] = []
    for family in families:
        for kind in (1, 2, 3, 5):
            with suppress(OSError):
                socket.socket(family, kind).close()
                made.append(family)
                break
    return made


def namespaces() -> "dict[str, str]":
    """Return which namespaces this is in."""
    return {name: os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES}


def processes() -> "dict[str, Any]":
    """Return which processes can be seen, what of the first one can be read, and what else /proc has."""
    names = sorted(os.listdir("/proc"))
    read: list[str] = []
    for name in _OF_THE_FIRST:
        path = f"/proc/1/{name}"
        with suppress(OSError):
            if name in ("fd", "root", "cwd"):
                os.listdir(path)
            else:
                with open(path, "rb") as file:
                    file.read(1)
            read.append(name)
    others = [name for name in names if not name.isdecimal() and name not in ("self", "thread-self")]
    return {"pids": [int(name) for name in names if name.isdecimal()], "own": os.getpid(), "read": read, "more": others}


def write_everywhere() -> "list[str]":
    """Make a file in every folder that is mounted and in some others; return those where that works."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        mounted = {line.split()[4] for line in file}
    return sorted(folder for folder in mounted.union(_ELSEWHERE) if os.path.isdir(folder) and _can_write(folder))


def _can_write(folder: str) -> bool:
    probe = os.path.join(folder, ".probe")
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_EXCL))
        os.unlink(probe)
    except OSError:
        return False
    return True


def change_system() -> "list[str]":
    """Try to change files of the system; return those that could be changed. Nothing would be harmed by it."""
    changed: list[str] = []
    for path in ("/usr/bin/env", "/etc/passwd", "/usr", "/dev/null", "/opt/pyexec/guest/pyexec_guest/protocol.py"):
        if not os.path.exists(path):
            continue
        with suppress(OSError):
            os.chmod(path, stat.S_IMODE(os.stat(path).st_mode))
            changed.append(path)
        if os.path.isfile(path):
            with suppress(OSError):
                os.close(os.open(path, os.O_WRONLY))
                changed.append(path)
    return sorted(set(changed))


def present(paths: "list[str]") -> "list[str]":
    """Return those of these paths that are there."""
    return [path for path in paths if os.path.lexists(path)]


def devices() -> "dict[str, list[str]]":
    """Return which devices there are, and the folders in which one could be made."""
    made: list[str] = []
    for folder in FOLDERS:
        for kind in (stat.S_IFCHR, stat.S_IFBLK):
            with suppress(OSError):
                os.mknod(f"{folder}/device", kind | 0o600, os.makedev(1, 1))
                os.unlink(f"{folder}/device")
                made.append(folder)
    there = [name for name in os.listdir("/dev") if not stat.S_ISLNK(os.lstat(f"/dev/{name}").st_mode)]
    return {"there": sorted(there), "made": made}


def draw() -> "dict[str, str]":
    """Return what each source of randomness gives."""
    fd, path = tempfile.mkstemp()
    os.close(fd)
    os.unlink(path)
    return {
        "random": str(random.random()),  # noqa: S311 - what is tried
        "secrets": secrets.token_hex(16),
        "uuid": str(uuid.uuid4()),
        "tempfile": path,
    }


def descriptors() -> "list[str]":
    """Return what this process has open: the number, and what it is."""
    found: list[str] = []
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        with suppress(OSError):  # The one that the folder was read with.
            found.append(f"{number} {os.readlink(f'/proc/self/fd/{number}').split(':')[0]}")
    return found


def environment(needle: str) -> "dict[str, list[str]]":
    """Return the names of the environment variables that this was started with, and where a text can be found."""
    found: list[str] = []
    for pid in os.listdir("/proc"):
        for name in ("environ", "cmdline"):
            with suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
                if needle.encode() in file.read():
                    found.append(f"/proc/{pid}/{name}")
    with open("/proc/self/environ", "rb") as file:
        names = [part.partition(b"=")[0].decode("utf-8", "replace") for part in file.read().split(b"\0") if part]
    return {"names": sorted(names), "found": sorted(found)}


def leave_traces(name: str) -> None:
    """Leave a file in each folder, and listen on sockets, for another sandbox to find."""
    for folder in FOLDERS:
        with open(f"{folder}/{name}", "w", encoding="ascii") as file:
            file.write(name)
    for address in (f"\0{name}", f"/work/{name}.socket"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen()
        _KEPT.append(listener)


def find_traces(name: str) -> "list[str]":
    """Return what another sandbox has left that can be found here."""
    found = [folder for folder in FOLDERS if os.path.exists(f"{folder}/{name}")]
    sockets = (f"@{name}", f"/work/{name}.socket")
    answers = connect([("AF_UNIX", "SOCK_STREAM", address) for address in sockets])
    return found + [address for address, answer in zip(sockets, answers, strict=True) if answer == "connected"]
