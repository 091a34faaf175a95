"""What this machine has."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def memory(root: Path = Path("/")) -> int:
    """Return how much memory this process and those it starts may use, in bytes.

    That is what the machine has, or what the control groups that this process is in allow, if that is less.
    """
    return min([_of_machine(root), *_allowed(root)])


def _of_machine(root: Path) -> int:
    for line in (root / "proc/meminfo").read_text("ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return int(value.split()[0]) * 1024
    raise OSError("/proc/meminfo does not tell how much memory there is")


def _allowed(root: Path) -> Iterator[int]:
    for line in (root / "proc/self/cgroup").read_text("utf-8").splitlines():
        number, kinds, path = line.split(":", 2)
        if "memory" in kinds.split(","):
            # Where the group is not to be seen under its own name, the mount shows it as the topmost one.
            folders = [root / "sys/fs/cgroup/memory" / path.lstrip("/"), root / "sys/fs/cgroup/memory"]
            yield from _of_version_1(folders)
        elif number == "0":
            folder = root / "sys/fs/cgroup" / path.lstrip("/")
            yield from _of_version_2(folder, root / "sys/fs/cgroup")


def _of_version_1(folders: list[Path]) -> Iterator[int]:
    for folder in folders:
        with suppress(OSError):
            fields = dict(line.split() for line in (folder / "memory.stat").read_text("ascii").splitlines())
            # With those of all groups above it.
            yield int(fields["hierarchical_memory_limit"])
            return


def _of_version_2(folder: Path, top: Path) -> Iterator[int]:
    for group in (folder, *folder.parents):
        with suppress(OSError, ValueError):  # It has no limit, or is not to be seen here.
            yield int((group / "memory.max").read_text("ascii"))
        if group == top:
            return
