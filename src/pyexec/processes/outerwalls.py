"""Starting a fork server behind its outer wall."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyexec_guest.outside
from pyexec.domain.errors import WallUnavailableError
from pyexec_guest.outside.forks import ForkServer, ForkServerGoneError
from pyexec_guest.outside.plan import Plan

CONTROL_FD_ARGUMENT = "{control}"
"""Stands in a plan's command for the number of the descriptor that orders come on."""

END_SECONDS = 5.0
_MOST_INFO = 64 * 1024
_MOST_LOG = 4000
_OUTSIDE = Path(pyexec_guest.outside.__file__).parent


def put_up(plan: Plan, groups: Sequence[int], environ: Mapping[str, str], timeout: float) -> ForkServer:
    """Put up an outer wall and start the plan's command, a fork server, behind it; blocks until that is ready.

    It is nobody's child and lives on when this process ends, unless its control connection is closed with it.

    Args:
        plan: The wall. `CONTROL_FD_ARGUMENT` in its command is replaced.
        groups: `cgroup.procs` files of the control groups that the fork server shall be in.
        environ: What our own interpreter needs to start; nothing of it gets behind the wall.
        timeout: The most seconds it may take.

    Raises:
        WallUnavailableError: It does not come up; nothing is left of it.
    """
    deadline = time.monotonic() + timeout
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with _memory() as orders, _memory() as log, theirs:
        told, telling = os.pipe()
        try:
            command = [str(theirs.fileno()) if part == CONTROL_FD_ARGUMENT else part for part in plan.command]
            os.write(orders, json.dumps({**plan.to_json(), "command": command}).encode("ascii"))
            os.lseek(orders, 0, os.SEEK_SET)
            process = _spawn(orders, telling, theirs, log, groups, environ)
        except BaseException:
            ours.close()
            os.close(told)
            raise
        finally:
            os.close(telling)
        theirs.close()
        try:
            first = _first_process(told, deadline)
            return _ready(ForkServer(ours, first), process, deadline)
        except (ForkServerGoneError, LookupError) as error:
            ours.close()
            _end(process)
            raise _unavailable(str(error), log) from error


def _spawn(
    orders: int, info: int, control: socket.socket, log: int, groups: Sequence[int], environ: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_OUTSIDE), str(orders), str(info), *map(str, groups)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=dict(environ),
            pass_fds=[orders, info, control.fileno(), *groups],
            start_new_session=True,
        )
    except OSError as error:
        raise WallUnavailableError(f"The outer wall could not be put up: {error.strerror}.") from error


def _first_process(told: int, deadline: float) -> int:
    """Return a pidfd of the first process behind the wall, which bubblewrap names once it is there.

    Raises:
        LookupError: It names none.
    """
    text = b""
    try:
        while len(text) < _MOST_INFO:
            readable, _, _ = select.select([told], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(told, _MOST_INFO) if readable else b""
            if not data:
                break
            text += data
    finally:
        os.close(told)
    try:
        return os.pidfd_open(int(json.loads(text)["child-pid"]))
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise LookupError("bubblewrap does not start") from error


def _ready(server: ForkServer, process: "subprocess.Popen[bytes]", deadline: float) -> ForkServer:
    try:
        server.wait_ready(max(0.0, deadline - time.monotonic()))
        # Bubblewrap itself leaves when the process it has started does, which was not the fork server but its parent.
        process.wait(END_SECONDS)
    except BaseException as error:
        server.destroy(END_SECONDS)
        server.close()
        if isinstance(error, subprocess.TimeoutExpired):
            raise ForkServerGoneError("bubblewrap does not leave it alone") from error
        raise
    return server


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _unavailable(why: str, log: int) -> WallUnavailableError:
    size = os.fstat(log).st_size
    written = os.pread(log, _MOST_LOG, max(0, size - _MOST_LOG)).decode("utf-8", "replace").strip()
    last = written.splitlines()[-1] if written else ""
    said = why.strip().splitlines()[-1] if why.strip() else ""
    return WallUnavailableError(
        f"The fork server behind the bubblewrap wall does not start: {said}.".replace("..", "."),
        hint=f"Its last words: {last}" if last else None,
        log=written,
    )


@contextmanager
def _memory() -> Generator[int]:
    fd = os.memfd_create("pyexec", os.MFD_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
