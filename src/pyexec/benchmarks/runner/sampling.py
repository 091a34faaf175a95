"""Running a program once, and measuring what it and everything it started use.

What the kernel tells of a process begins when it is forked. Until it becomes the program it is a copy of this one, and
what it uses and the memory it has are counted: what it uses is taken off, and its memory is kept below that of any
Python. So this process must be small (neither `dataclasses` nor `typing` here: 2 MB), and the copy does little.
"""

import ctypes
import os
import resource
import select
import signal
import struct
import sys
import time

from pyexec.benchmarks.runner import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from pyexec.benchmarks.runner.orders import Program

STDERR_BYTES = 64 * 1024
GULP = 64 * 1024
NATURAL_END_SECONDS = 0.25
STEP_SECONDS = 0.8
KILL_SECONDS = 5.0
NOT_STARTED = 127
_PR_SET_CHILD_SUBREAPER = 36
_KILOBYTES = 1 if sys.platform == "darwin" else 1024
# What the copy may grow by after it has said how large it is: 128 KB were seen, as each core counts by itself.
_MARGIN_BYTES = 256 * 1024
_BEFORE = struct.Struct("dddqqqqq")
_FAILED = b"\0could not\0"


class Sample:
    """One run of a program. Times are seconds, sizes bytes.

    Attributes:
        wall: From when it became the program until it had ended.
        user, system: CPU time, of all its processes.
        largest: The most memory that any one process had.
        peak: The most memory that all of them had at one time.
        peak_known: False when it was so small that `peak` is only what it cannot have exceeded.
        processes: The most that were seen at one time.
        memory: Seconds since the start and bytes.
        left_behind: How many processes had to be ended after the program had.
        exit_code: As a shell says it.
        stderr: The end of what it wrote there.
        not_started: Why it could not be started.
    """

    def __init__(self) -> None:
        self.wall = self.user = self.system = 0.0
        self.peak = self.largest = 0
        self.peak_known = True
        self.minor_faults = self.major_faults = 0
        self.voluntary_switches = self.involuntary_switches = 0
        self.processes = 1
        self.memory: list[tuple[float, int]] = []
        self.left_behind = 0
        self.exit_code: int | None = None
        self.signal: str | None = None
        self.timed_out = False
        self.stderr = b""
        self.not_started: str | None = None


class Sampler:
    """Runs programs one after the other. There is one in a process, which becomes the parent of all that they leave.

    Args:
        interval: Seconds between two looks at the memory.
        points: How many of those are kept at most.
        timeout: Seconds that one run may take; 0 means any.
        scratch: The path of a file to be made, opened and unlinked again.
    """

    def __init__(self, interval: float, points: int, timeout: float, scratch: str) -> None:
        self.stopped: int | None = None
        self._interval = interval
        self._points = points
        self._timeout = timeout
        self._scratch = scratch
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._run: _Run | None = None
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._woken, waker = os.pipe()
        for fd in (self._woken, waker):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        # Whoever becomes a program gets the default of a signal that is handled here, and Python ignores two.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_stop)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)

    def run(self, program: "Program", *, show: bool, timeout: float | None = None) -> Sample:
        """Run it to its end; its output is passed on when it is to be shown, else what it prints goes nowhere."""
        told, tell = os.pipe()
        err, err_write = os.pipe()
        stdin = self._stdin(program.stdin)
        stdout = 1 if show else self._null
        pid = os.fork()
        if pid == 0:
            _become(program, stdin, stdout, err_write, tell)
        for fd in (tell, err_write, *({stdin} - {self._null})):
            os.close(fd)
        with open(told, "rb", buffering=0) as file:
            before = file.readall()  # Until it has become the program.
        run = self._run = _Run(pid, err, before, (self._interval, self._points), show=show)
        if self.stopped:  # It came when there was nobody yet to hand it on to.
            run.signal(self.stopped)
        self._attend(run, self._timeout if timeout is None else timeout)
        self._run = None
        return run.result()

    def _stdin(self, text: str) -> int:
        if not text:
            return self._null
        fd = os.open(self._scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.unlink(self._scratch)
        write_all(fd, text.encode("utf-8", "surrogateescape"))
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def _attend(self, run: "_Run", timeout: float) -> None:
        if not self._until(run, lambda: run.ended, run.started + timeout if timeout else None):
            run.sample.timed_out = True
            for number in (signal.SIGINT, signal.SIGTERM):
                run.signal(number)
                if self._until(run, lambda: run.ended, time.monotonic() + STEP_SECONDS):
                    break
            self._kill(run)
        if not self._until(run, lambda: run.alone, time.monotonic() + NATURAL_END_SECONDS):
            run.sample.left_behind = len(tree.descendants(os.getpid()))
            self._kill(run)
        run.drain()

    def _kill(self, run: "_Run") -> None:
        deadline = time.monotonic() + KILL_SECONDS
        while not run.alone and time.monotonic() < deadline:
            run.signal(signal.SIGKILL)
            for pid in tree.descendants(os.getpid()):
                _send(os.kill, pid, signal.SIGKILL)
            self._until(run, lambda: run.alone, time.monotonic() + 0.02)

    def _until(self, run: "_Run", condition: "Callable[[], bool]", deadline: float | None) -> bool:
        """Look at it and read what it writes until something holds; tell whether it does."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        run.listen(poll)
        look_at = run.watch.next_look(time.monotonic()) if tree.CAN_LOOK else None
        while not condition():
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return False
            if look_at is not None and now >= look_at:
                run.watch.look()
                look_at = run.watch.next_look(time.monotonic())
            pauses = [at - now for at in (deadline, look_at) if at is not None]
            ready = poll.poll(max(0.0, min(pauses)) * 1000 if pauses else None)
            woken = time.monotonic()
            for fd, _event in ready:
                if fd == self._woken:
                    os.read(fd, GULP)
                    run.reap(woken)
                elif not run.gulp():
                    poll.unregister(fd)
        return True

    def _on_stop(self, number: int, _frame: object) -> None:
        self.stopped = number
        if self._run is not None:
            self._run.signal(number)


class _Run:
    """A run under way."""

    def __init__(self, pid: int, err: int, before: bytes, looks: "tuple[float, int]", *, show: bool) -> None:
        self.sample = Sample()
        self.pid = pid
        at = before.rfind(_FAILED)
        used, why = (before, b"") if at < 0 else (before[:at], before[at + len(_FAILED) :])
        self.sample.not_started = why.decode("utf-8", "replace") or None
        self._used = _BEFORE.unpack(used) if len(used) == _BEFORE.size else None
        self.started: float = time.monotonic() if self._used is None else self._used[0]
        self.watch = tree.MemoryWatch(self.started, *looks)
        self.ended = False
        self.alone = False
        self._err = err
        self._err_open = True
        self._show = show
        os.set_blocking(err, False)

    def signal(self, number: int) -> None:
        """Send a signal to the program and what shares its process group."""
        if not self.ended:
            _send(os.killpg, self.pid, number)

    def listen(self, poll: "select.poll") -> None:
        """Have the poll wake for what it writes to stderr."""
        if self._err_open:
            poll.register(self._err, select.POLLIN)

    def reap(self, now: float) -> None:
        """Take note of every process that has ended and has no other parent."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self.alone = True
                return
            if pid == 0:
                return
            self._add(usage)
            if pid == self.pid:
                self.ended = True
                self.sample.wall = now - self.started
                code = os.waitstatus_to_exitcode(status)
                self.sample.exit_code = code if code >= 0 else 128 - code
                self.sample.signal = _name(-code) if code < 0 else None

    def _add(self, usage: resource.struct_rusage) -> None:
        sample = self.sample
        sample.user += usage.ru_utime
        sample.system += usage.ru_stime
        sample.largest = max(sample.largest, usage.ru_maxrss * _KILOBYTES)
        sample.minor_faults += usage.ru_minflt
        sample.major_faults += usage.ru_majflt
        sample.voluntary_switches += usage.ru_nvcsw
        sample.involuntary_switches += usage.ru_nivcsw

    def gulp(self) -> bool:
        """Read what there is on stderr; tell whether there may be more some time."""
        try:
            data = os.read(self._err, GULP)
        except BlockingIOError:
            return True
        if not data:
            self._err_open = False
            return False
        self.sample.stderr = (self.sample.stderr + data)[-STDERR_BYTES:]
        if self._show:
            write_all(2, data)
        return True

    def drain(self) -> None:
        """Read the rest, and let go."""
        while self._err_open:
            length = len(self.sample.stderr)
            self.gulp()
            if len(self.sample.stderr) in (length, STDERR_BYTES):
                break
        os.close(self._err)

    def result(self) -> Sample:
        """Return what it came to, without what the copy had used before it became the program."""
        sample = self.sample
        sample.peak = max(self.watch.peak, sample.largest)
        sample.processes = max(1, self.watch.processes)
        sample.memory = self.watch.series
        if self._used is None:
            return sample
        _at, user, system, largest, minor, major, voluntary, involuntary = self._used
        # Which part of the time was the user's the kernel only estimates; the sum is exact.
        total = max(0.0, sample.user + sample.system - user - system)
        sample.system = min(total, max(0.0, sample.system - system))
        sample.user = total - sample.system
        sample.peak_known = sample.peak > largest * _KILOBYTES + _MARGIN_BYTES
        sample.minor_faults -= minor
        sample.major_faults -= major
        sample.voluntary_switches -= voluntary
        sample.involuntary_switches -= involuntary
        return sample


def write_all(fd: int, data: bytes) -> None:
    """Write all of it."""
    while data:
        data = data[os.write(fd, data) :]


def _become(program: "Program", stdin: int, stdout: int, stderr: int, tell: int) -> "NoReturn":
    """Turn this freshly forked process into the program; say what it has used until then, and why it cannot."""
    try:
        os.setsid()
        os.chdir(program.cwd)
        os.dup2(stdin, 0)
        if stdout != 1:
            os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        _rehearse(program, tell)
        os.write(tell, _used_until_now())
        os.execve(program.argv[0], program.argv, program.env)
    except OSError as error:
        why = f"could not start {program.argv[0]} in {program.cwd}: {error.strerror}"
        os.write(tell, _FAILED + why.encode("utf-8", "replace")[:3000])
    except BaseException as error:  # noqa: BLE001 - nothing may escape into a second copy of the runner
        why = f"could not start {program.argv[0]}: {type(error).__name__}"
        os.write(tell, _FAILED + why.encode("utf-8", "replace")[:3000])
    os._exit(NOT_STARTED)


def _rehearse(program: "Program", tell: int) -> None:
    """Do what comes next without its effects, so that all its code and data are in memory when that is measured.

    A copy maps the pages of its code as it comes to them: without this it grew by up to 740 KB after it had said how
    large it is.
    """
    _used_until_now()
    os.write(tell, b"")
    try:
        os.execve("/", program.argv, program.env)  # A folder is no program.
    except PermissionError:
        return


def _used_until_now() -> bytes:
    used = resource.getrusage(resource.RUSAGE_SELF)
    counts = (used.ru_maxrss, used.ru_minflt, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw)
    return _BEFORE.pack(time.monotonic(), used.ru_utime, used.ru_stime, *counts)


def _send(how: "Callable[[int, int], None]", pid: int, number: int) -> None:
    try:
        how(pid, number)
    except (ProcessLookupError, PermissionError):
        return  # It is gone, or has become another user.


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
