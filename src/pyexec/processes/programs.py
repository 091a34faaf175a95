"""Starting programs of ours: one whose end is waited for in a loop, one that lives on by itself."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress

TERM_SECONDS = 2.0


class Program:
    """A program that runs in a session of its own; its standard output and error go to one pipe.

    Attributes:
        output: The pipe, to read from; who reads closes it.
        over: A descriptor that can be read once the program has ended.
    """

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, stdin: str) -> None:
        """Start it.

        Raises:
            OSError: It cannot be started.
        """
        self.output, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(writing, True)
        try:
            with _text(stdin.encode()) as source:
                self._process = subprocess.Popen(
                    argv, env=dict(env), cwd=cwd, stdin=source, stdout=writing, stderr=writing, start_new_session=True
                )
        except BaseException:
            os.close(self.output)
            raise
        finally:
            os.close(writing)
        self.over = os.pidfd_open(self._process.pid)

    def end(self) -> None:
        """Ask it to end, then end it, and what it has started; blocks for a moment."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(TERM_SECONDS)
                break

    def close(self) -> int:
        """Reap it, once it has ended; return its wait status, as the kernel has it."""
        os.close(self.over)
        code = self._process.wait(TERM_SECONDS)
        return -code if code < 0 else code << 8


def start_detached(
    argv: Sequence[str], *, env: Mapping[str, str], stdin: bytes, log: int, timeout: float
) -> str | None:
    """Start a program that leaves its first process and lives on; wait until it says on its output that it is up.

    Args:
        argv: The program and its arguments.
        env: All its environment variables.
        stdin: What it can read.
        log: Where its standard error goes.
        timeout: The most seconds it may take.

    Returns:
        The first line it has written; None when it ended or wrote none in time, and it is killed then.

    Raises:
        OSError: It cannot be started.
    """
    told, telling = os.pipe()
    try:
        with _text(stdin) as source:
            process = subprocess.Popen(
                argv, stdin=source, stdout=telling, stderr=log, cwd="/", env=dict(env), start_new_session=True
            )
    except BaseException:
        os.close(told)
        raise
    finally:
        os.close(telling)
    line = _first_line(told, time.monotonic() + timeout)
    if line is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return line


@contextmanager
def _text(data: bytes) -> Generator[int]:
    fd = os.memfd_create("pyexec", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _first_line(fd: int, deadline: float) -> str | None:
    text = b""
    with open(fd, "rb", buffering=0) as file:
        while b"\n" not in text:
            readable, _, _ = select.select([file], [], [], max(0.0, deadline - time.monotonic()))
            data = file.read(4096) if readable else b""
            if not data:
                return None
            text += data
    return text.decode("utf-8", "replace").partition("\n")[0]
