"""Looking at the processes of this machine, and waiting for what they do."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MARK = "PYEXEC_EXECUTION_ID"


WITHIN_SECONDS = 100.0
"""Bounds a test that has gone wrong; how soon something comes true is a matter of the machine."""


def eventually(condition: Callable[[], T], seconds: float = WITHIN_SECONDS) -> T:
    """Ask again and again until the answer is true; return it. Fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {condition.__name__}")
        time.sleep(0.005)
    return answer


def alive(pid: int) -> bool:
    """Tell whether a process runs; one that only waits to be reaped does not."""
    return state_of(pid) not in ("", "Z", "X")


def state_of(pid: int) -> str:
    """Return the letter of a process's state; empty when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    return text[text.rindex(")") + 2 :].split()[0]


def peak_memory(pid: int) -> int:
    """Return the most memory, in bytes, that a process has had resident."""
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no VmHWM for {pid}")


def all_pids() -> Iterator[int]:
    """Yield every living process but this one."""
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid() and alive(int(name)):
            yield int(name)


def marked_with(execution_id: str) -> list[int]:
    """Return the processes that carry the mark of an execution in their environment."""
    return [pid for pid in all_pids() if f"{MARK}={execution_id}".encode() in _environment(pid)]


def holding(path: Path) -> list[int]:
    """Return the processes that have this file, or a file below this folder, open."""
    return [pid for pid in all_pids() if any(Path(target).is_relative_to(path) for target in _open_files(pid))]


def belonging_to(home: Path) -> dict[int, str]:
    """Return what still runs for a state folder, keepers and programs alike, with their names."""
    folder = home / "executions"
    marks = {f"{MARK}={name}".encode() for name in (os.listdir(folder) if folder.is_dir() else ())}
    return {
        pid: name_of(pid)
        for pid in all_pids()
        if any(Path(target).is_relative_to(folder) for target in _open_files(pid))
        or not marks.isdisjoint(_environment(pid))
    }


def name_of(pid: int) -> str:
    """Return the command line of a process, or nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _environment(pid: int) -> set[bytes]:
    try:
        return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return set()


def _open_files(pid: int) -> list[str]:
    found: list[str] = []
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return found
    for name in names:
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    return found
