"""`!command`: its output goes the way of all output, and an interrupt ends it."""

import os
import signal

_SHELL = "/bin/sh"


def run_command(command: str) -> int:
    """Run a command in the shell, with this process's output and no input; return its exit status as `$?` has it."""
    pid = os.posix_spawn(
        _SHELL,
        [_SHELL, "-c", command],
        os.environ,  # noqa: TID251 - what the program has made of its own environment
        setsigdef=(signal.SIGINT, signal.SIGPIPE),
    )
    try:
        _pid, status = os.waitpid(pid, 0)
    except BaseException:
        _end(pid)
        raise
    code = os.waitstatus_to_exitcode(status)
    if status_of_signal(code) == signal.SIGINT:
        raise KeyboardInterrupt  # It was meant for us as well.
    return code if code >= 0 else 128 - code


def status_of_signal(code: int) -> int:
    """Return which signal ended a process; 0 for none."""
    return -code if code < 0 else 0


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return
