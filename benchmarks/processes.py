"""What the kernel says about processes."""

import os
import re
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from installation import BenchmarkError

RUN_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a program cost, in seconds."""

    wall: float
    cpu: float


def run(argv: Sequence[str], environ: Mapping[str, str], *, cwd: Path | None = None) -> Cost:
    """Run a program as a person's own script would, with its output in pipes.

    Raises:
        BenchmarkError: It failed.
    """
    before = _children_cpu()
    started = time.perf_counter()
    done = subprocess.run(
        argv, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_SECONDS, check=False
    )
    wall = time.perf_counter() - started
    cpu = _children_cpu() - before
    if done.returncode != 0:
        raise BenchmarkError(f"{argv[0]} failed: {done.stderr.decode('utf-8', 'replace')[-2000:]}")
    return Cost(wall, cpu)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a living process, of the children it has reaped, and of those that live."""
    total = _clock(pid) + _reaped(pid)
    for child in _children(pid):
        total += cpu_seconds(child)
    return total


def resident_bytes(pid: int, *, peak: bool = False) -> int | None:
    """Return how much memory a process holds, or held at most; None when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return None
    found = re.search(rf"^Vm{'HWM' if peak else 'RSS'}:\s+(\d+) kB$", status, re.MULTILINE)
    return None if found is None else int(found[1]) * 1024


def forget_peak(pid: int) -> None:
    """Let the peak of a process begin anew; where that is not allowed, its start counts too."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5", "ascii")


def parent(pid: int) -> int | None:
    """Return the parent of a process; None when it is gone."""
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _clock(pid: int) -> float:
    # The clock of all threads of a process, in nanoseconds where /proc has ticks of 10 ms: clock_getcpuclockid(3).
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _reaped(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _children(pid: int) -> Iterator[int]:
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, listed.read_text("ascii").split())
        except OSError:
            continue


def _stat(pid: int) -> list[str]:
    """Return the fields of a process from its state on (the third of proc(5))."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()
