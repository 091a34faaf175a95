"""Running a tool to its end, with its messages read while it works."""

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

TICK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a tool ended; `exit_code` is negative where a signal ended it."""

    exit_code: int
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)


def run_tool(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    stdin: str = "",
    descriptors: Sequence[int] = (),
    on_line: Callable[[str], None] | None = None,
    on_tick: Callable[[], None] | None = None,
    on_start: Callable[[int], None] | None = None,
) -> Finished:
    """Run a tool and wait for it; blocks.

    Args:
        argv: The program, by its path, and its arguments.
        env: All its environment variables.
        cwd: The folder to run it in; None: this process's own.
        stdin: What it can read.
        descriptors: Open files it inherits under the same numbers.
        on_line: Hears each line of its standard error as it comes, from another thread.
        on_tick: Is called every tenth of a second while it runs; what it raises ends the tool.
        on_start: Is told its pid.

    Raises:
        OSError: It cannot be started.
    """
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as result:
        source.write(stdin.encode())
        source.seek(0)
        reading, writing = os.pipe()
        listener = _Listener(reading, on_line)
        try:
            process = subprocess.Popen(
                argv, env=dict(env), cwd=cwd, stdin=source, stdout=result, stderr=writing, pass_fds=descriptors
            )
        finally:
            os.close(writing)
            listener.start()
        try:
            if on_start is not None:
                on_start(process.pid)
            _wait(process, on_tick)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            listener.join()
        result.seek(0)
        stdout = result.read().decode("utf-8", "replace")
    return Finished(exit_code=process.returncode, stdout=stdout, stderr="".join(listener.lines))


def _wait(process: "subprocess.Popen[bytes]", on_tick: Callable[[], None] | None) -> None:
    while True:
        try:
            process.wait(TICK_SECONDS)
        except subprocess.TimeoutExpired:
            if on_tick is not None:
                on_tick()
        else:
            return


class _Listener(threading.Thread):
    """Reads lines from a pipe until its other end is closed."""

    def __init__(self, fd: int, on_line: Callable[[str], None] | None) -> None:
        super().__init__(daemon=True)
        self.lines: list[str] = []
        self._fd = fd
        self._on_line = on_line

    def run(self) -> None:
        with open(self._fd, encoding="utf-8", errors="replace") as file:
            for line in file:
                self.lines.append(line)
                if self._on_line is not None:
                    self._on_line(line.rstrip("\n"))
