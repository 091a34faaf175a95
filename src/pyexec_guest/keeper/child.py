"""Starting a program: fork, set the stage, exec."""

import fcntl
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, NoReturn

from pyexec_guest.keeper import linux

PIPE_BYTES = 1024 * 1024
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)
_GET_PIPE_SIZE = getattr(fcntl, "F_GETPIPE_SZ", None)


_changed_signals: "list[int]" = []


def remember_changed_signals() -> None:
    """Note which signals this process does not treat in the default way; programs get every default back.

    Python changes some, we do, and `nohup` and `&` leave some ignored.
    """
    _changed_signals[:] = [
        number for number in signal.valid_signals() if signal.getsignal(number) not in (signal.SIG_DFL, None)
    ]


class StartError(Exception):
    """The program could not be started; the text says why."""


@dataclass
class Child:
    """A program that was started, until it is reaped."""

    pid: int
    stdout: int
    stderr: int
    status: "int | None" = None
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    peak_rss_bytes: int = 0

    @property
    def exited(self) -> bool:
        """Whether the program itself has ended; its descendants may live on."""
        return self.status is not None


def start(
    argv: "Sequence[str]",
    *,
    cwd: str,
    env: "Mapping[str, str]",
    stdin: "str | None",
    inherited: "int | None" = None,
) -> Child:
    """Start a program in a session of its own, with default signals and the given (or an empty) stdin.

    `inherited` is a descriptor that it gets besides, under the same number.

    Raises:
        StartError: The working directory or the program is not there, or may not be used.
    """
    with text_file(stdin) if stdin else open(os.devnull, "rb") as source:
        out_read, out_write = output_pipe()
        err_read, err_write = output_pipe()
        failure_read, failure_write = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _turn_into(argv, cwd, env, parent, (source.fileno(), out_write, err_write), failure_write, inherited)
    for fd in (out_write, err_write, failure_write):
        os.close(fd)
    with open(failure_read, "rb") as failures:
        failure = failures.read()
    if failure:
        os.waitpid(pid, 0)
        os.close(out_read)
        os.close(err_read)
        raise StartError(failure.decode("utf-8", "replace"))
    return Child(pid=pid, stdout=out_read, stderr=err_read)


def _turn_into(
    argv: "Sequence[str]",
    cwd: str,
    env: "Mapping[str, str]",
    parent: int,
    standard: "tuple[int, int, int]",
    failure: int,
    inherited: "int | None",
) -> NoReturn:
    """Turn this freshly forked process into the program; say on `failure` why not, when it cannot."""
    try:
        set_stage(parent)
        for number, fd in enumerate(standard):
            os.dup2(fd, number)
        if inherited is not None:
            os.set_inheritable(inherited, True)
    except BaseException as error:  # noqa: BLE001 - nothing may escape into a second copy of the keeper
        os.write(failure, f"could not start: {type(error).__name__}".encode())
        os._exit(127)
    become(argv, cwd, env, failure)


def set_stage(parent: int) -> None:
    """Make this freshly forked process one that nothing of its parent sticks to, but that dies with it."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (*_changed_signals, signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    linux.die_with_parent(signal.SIGKILL, parent)


def become(argv: "Sequence[str]", cwd: str, env: "Mapping[str, str]", failure: int) -> NoReturn:
    """Turn this process into a program; say on `failure` why not, when it cannot."""
    what = f"enter the directory {cwd}"
    try:
        os.chdir(cwd)
        what = f"run {argv[0]}"
        os.execvpe(argv[0], list(argv), dict(env))
    except OSError as error:
        os.write(failure, f"could not {what}: {error.strerror}".encode("utf-8", "replace")[:4000])
    except BaseException as error:  # noqa: BLE001 - nothing may escape into a second copy of the keeper
        os.write(failure, f"could not {what}: {type(error).__name__}".encode("utf-8", "replace")[:4000])
    os._exit(127)


@contextmanager
def text_file(text: str) -> "Generator[IO[bytes]]":
    """Open a file that has no name and holds the text, to be read from its beginning."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.seek(0)
        yield file


def output_pipe() -> "tuple[int, int]":
    """Return a large pipe, of which the end to read from does not block.

    Raises:
        StartError: Standard descriptors are closed here.
    """
    read, write = os.pipe()
    # Both ends must lie above the standard descriptors, or dup2 in the child would overwrite one of them.
    if write <= 2:
        raise StartError("standard descriptors are closed")
    os.set_blocking(read, False)
    if _SET_PIPE_SIZE is not None:
        # Where the user's share of pipe memory is used up, the default size works too, only slower.
        with suppress(OSError):
            fcntl.fcntl(write, _SET_PIPE_SIZE, PIPE_BYTES)
    return read, write


def exit_of(status: int) -> "tuple[int, str | None]":
    """Return the exit code by the shell's convention, and the signal's name when one ended the program."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code, None
    return 128 - code, signal_name(-code)


def signal_name(number: int) -> str:
    """Return `SIGTERM` for 15, and so on."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def peak_rss_bytes(maxrss: int) -> int:
    """Return what `ru_maxrss` means in bytes: Linux counts kilobytes, macOS bytes."""
    return maxrss if sys.platform == "darwin" else maxrss * 1024
