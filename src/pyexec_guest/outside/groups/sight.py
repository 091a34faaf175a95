"""Looking into a sandbox from outside: what its processes use, where no control group counts it."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")
_KILOBYTE = 1024
_FOLDERS = ("work", "tmp", "dev/shm")
_FIRST = "1"
_WORKSPACE = "workspace"
# Of what follows the name in /proc/<pid>/stat: user and system time, and those of the children that it has waited for.
_USER, _SYSTEM, _USER_OF_CHILDREN, _SYSTEM_OF_CHILDREN = 11, 12, 13, 14


@dataclass(frozen=True)
class Times:
    """Who was there, and the processor time in clock ticks."""

    processes: "frozenset[str]" = frozenset()
    user: int = 0
    system: int = 0

    @property
    def user_seconds(self) -> float:
        """Seconds in user code."""
        return self.user / _TICKS

    @property
    def system_seconds(self) -> float:
        """Seconds in the kernel."""
        return self.system / _TICKS


class Sight:
    """One sandbox, seen through the /proc that it has mounted itself: that has all its processes, and no others.

    Nothing in a sandbox can mount anything over it, and whoever owns the sandbox's outermost user namespace may look.

    Args:
        first: The pidfd of its first process.

    Raises:
        OSError: It cannot be seen.
    """

    def __init__(self, first: int) -> None:
        pid = _pid_of(first)
        self._fd = os.open(f"/proc/{pid}/root/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _pid_of(first)  # Has it ended, the pid may be another's.
            self._read(_FIRST, "smaps_rollup")
        except BaseException:
            self.close()
            raise

    def times(self) -> Times:
        """Return who is there, and the processor time of all together; little work."""
        names = self._names()
        user = system = 0
        for name in names:
            with suppress(OSError):
                values = self._read(name, "stat").rpartition(b")")[2].split()
                user += int(values[_USER]) + int(values[_USER_OF_CHILDREN])
                system += int(values[_SYSTEM]) + int(values[_SYSTEM_OF_CHILDREN])
        return Times(frozenset(names), user, system)

    def memory(self) -> int:
        """Return the bytes that it uses, never more than it does; some milliseconds of work.

        What processes share with the fork server is not theirs: the first process, which does nothing, has as large a
        share in it as each of the others. What is shared and in files is counted by the larger of both, because it
        cannot be told how much of it is the same.
        """
        parts = [part for part in map(self._parts, self._names()) if part is not None]
        inherited = self._parts(_FIRST)
        share = max(0, inherited.anonymous - inherited.alone) if inherited is not None else 0
        own = sum(max(part.alone, part.anonymous - share) for part in parts)
        return own + max(sum(part.shared for part in parts), self._in_files())

    def nameless(self, device: int) -> int:
        """Return the bytes of open files on a file system that have no name there any more."""
        found: dict[int, int] = {}
        for name in self._names():
            for state in self._open_files(name):
                if stat.S_ISREG(state.st_mode) and not state.st_nlink and state.st_dev == device:
                    found[state.st_ino] = state.st_blocks * 512
        return sum(found.values())

    def close(self) -> None:
        """Let go of it."""
        os.close(self._fd)

    def _names(self) -> "list[str]":
        with suppress(OSError):
            return [name for name in os.listdir(self._fd) if name.isdecimal()]
        return []

    def _read(self, name: str, file: str) -> bytes:
        fd = os.open(f"{name}/{file}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._fd)
        try:
            return os.read(fd, 8192)
        finally:
            os.close(fd)

    def _parts(self, name: str) -> "_Parts | None":
        try:
            text = self._read(name, "smaps_rollup").decode("ascii", "replace")
        except OSError:
            return None
        found: dict[str, int] = {}
        for line in text.splitlines()[1:]:
            key, _, value = line.partition(":")
            found[key] = int(value.split()[0]) * _KILOBYTE
        shared = found.get("Pss_Shmem", 0)
        anonymous = found.get("Pss_Anon", 0) + found.get("SwapPss", 0)
        return _Parts(anonymous=anonymous, alone=max(0, found.get("Private_Dirty", 0) - shared), shared=shared)

    def _in_files(self) -> int:
        """Return what is in its folders, and in files in memory that have no name."""
        total = 0
        folders: set[int] = set()
        for place in _FOLDERS:
            with suppress(OSError):
                # Where it is does not depend on anything that it could make: its own root is read-only.
                path = f"/proc/self/fd/{self._fd}/{_FIRST}/root/{place}"
                size = os.statvfs(path)
                total += (size.f_blocks - size.f_bfree) * size.f_frsize
                folders.add(os.stat(path).st_dev)
        with suppress(OSError):  # What is there lies on the disk.
            folders.add(os.stat(f"/proc/self/fd/{self._fd}/{_FIRST}/root/{_WORKSPACE}").st_dev)
        nameless: dict[tuple[int, int], int] = {}
        for name in self._names():
            for state in self._open_files(name):
                if stat.S_ISREG(state.st_mode) and not state.st_nlink and state.st_dev not in folders:
                    nameless[state.st_dev, state.st_ino] = state.st_blocks * 512
        return total + sum(nameless.values())

    def _open_files(self, name: str) -> "Iterator[os.stat_result]":
        with suppress(OSError):
            folder = os.open(f"{name}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._fd)
            try:
                for number in os.listdir(folder):
                    with suppress(OSError):
                        yield os.stat(number, dir_fd=folder)
            finally:
                os.close(folder)


@dataclass(frozen=True)
class _Parts:
    """One process, in bytes: its share of memory without a file, what it has of that alone, its share of the rest."""

    anonymous: int
    alone: int
    shared: int


def machine_pids(first: int) -> "list[int]":
    """Return all processes that are in the pid namespace of this one, by their pids here; looks at all there are."""
    found: list[int] = []
    with suppress(OSError):
        namespace = os.readlink(f"/proc/{_pid_of(first)}/ns/pid")
        for name in os.listdir("/proc"):
            with suppress(OSError):
                if name.isdecimal() and os.readlink(f"/proc/{name}/ns/pid") == namespace:
                    found.append(int(name))
    return found


def _pid_of(pidfd: int) -> int:
    with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as file:
        pid = next((int(line.split()[1]) for line in file if line.startswith("Pid:")), -1)
    if pid <= 0:
        raise ProcessLookupError
    return pid
