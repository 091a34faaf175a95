"""Attempts to use more than is allowed. Sizes are bytes."""

import errno
import mmap
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_CHUNK = 2 * 1024 * 1024
_BLOCK = bytes(256 * 1024)
_PAGE = 4096


def allocate(most: int) -> "dict[str, Any]":
    """Allocate and keep until that much is held, or Python says that there is no more."""
    kept: list[bytearray] = []
    refused = False
    try:
        while len(kept) * _CHUNK < most:
            kept.append(bytearray(_CHUNK))
    except MemoryError:
        refused = True
    held = len(kept) * _CHUNK
    kept.clear()
    return {"held": held, "refused": refused}


def allocate_together(each: int, processes: int) -> "dict[str, int]":
    """Have several processes hold so much each, all at once; return how many got it and how many were killed."""
    reading, writing = os.pipe2(os.O_NONBLOCK)
    children = [_child(lambda: _hold(each, writing)) for _ in range(processes)]
    done, killed, failed = 0, 0, 0
    while done + killed + failed < processes:
        with suppress(BlockingIOError):
            done += len(os.read(reading, processes))
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            children.remove(pid)
            killed += os.WIFSIGNALED(status)
            failed += not os.WIFSIGNALED(status)
        time.sleep(0.002)
    _end(children)
    for fd in (reading, writing):
        os.close(fd)
    return {"done": done, "killed": killed, "failed": failed}


def share_memory(size: int) -> int:
    """Write to every page of memory that processes can share, which no limit of one process counts."""
    with mmap.mmap(-1, size) as memory:
        for at in range(0, size, _PAGE):
            memory[at] = 1
    return size


def burn(processes: int, seconds: float) -> "dict[str, float]":
    """Keep processors busy; return how many seconds of their time were had, and how many seconds went by."""
    before = _children_seconds()
    began = time.monotonic()
    children = [_child(_spin) for _ in range(processes)]
    time.sleep(seconds)
    _end(children)
    return {"processor": _children_seconds() - before, "elapsed": time.monotonic() - began}


def fork_many(most: int) -> "dict[str, int]":
    """Start processes until there are so many, or the kernel refuses."""
    children: list[int] = []
    refused = 0
    try:
        while len(children) < most:
            children.append(_child(signal.pause))
    except OSError as error:
        refused = error.errno or errno.EIO
    _end(children)
    return {"made": len(children), "refused": refused}


def open_many(most: int) -> "dict[str, int]":
    """Open a file again and again."""
    opened: list[int] = []
    refused = 0
    try:
        while len(opened) < most:
            opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        refused = error.errno or errno.EIO
    for fd in opened:
        os.close(fd)
    return {"made": len(opened), "refused": refused}


def fill(folder: str, most: int) -> "dict[str, int]":
    """Write a folder full, in files of a few megabytes."""
    written, refused = 0, 0
    paths: list[str] = []
    try:
        while written < most:
            paths.append(os.path.join(folder, f"fill-{len(paths)}"))
            with open(paths[-1], "wb", buffering=0) as file:
                for _ in range(8):
                    written += file.write(_BLOCK) or 0
    except OSError as error:
        refused = error.errno or errno.EIO
    for path in paths:
        with suppress(OSError):
            os.unlink(path)
    return {"made": written, "refused": refused}


def fill_with_files(folder: str, most: int) -> "dict[str, int]":
    """Make empty files in a folder."""
    made, refused = 0, 0
    within = os.path.join(folder, "many")
    os.mkdir(within)
    try:
        while made < most:
            os.close(os.open(os.path.join(within, str(made)), os.O_CREAT | os.O_WRONLY))
            made += 1
    except OSError as error:
        refused = error.errno or errno.EIO
    for number in range(made):
        os.unlink(os.path.join(within, str(number)))
    os.rmdir(within)
    return {"made": made, "refused": refused}


def make_large_file(size: int) -> int:
    """Give a file a size; return 0 when it has it, else an errno."""
    path = "/work/large"
    try:
        with open(path, "wb") as file:
            file.truncate(size)
    except OSError as error:
        return error.errno or errno.EIO
    finally:
        with suppress(OSError):
            os.unlink(path)
    return 0


def raise_limits() -> "list[str]":
    """Raise each limit of this process by one; return those that could be raised, or have no end."""
    raised: list[str] = []
    for name in ("DATA", "NPROC", "NOFILE", "FSIZE", "CORE", "MEMLOCK"):
        kind: int = getattr(resource, f"RLIMIT_{name}")
        _soft, hard = resource.getrlimit(kind)
        try:
            resource.setrlimit(kind, (hard, resource.RLIM_INFINITY if hard == resource.RLIM_INFINITY else hard + 1))
        except (OSError, ValueError):
            continue
        raised.append(name)
    return raised


def _hold(size: int, telling: int) -> None:
    kept = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, _PAGE):
        kept[at] = 1
    os.write(telling, b"d")
    signal.pause()


def _spin() -> None:
    while True:
        pass


def _child(work: "Callable[[], object]") -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(1)
    return pid


def _end(children: "list[int]") -> None:
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in children:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
