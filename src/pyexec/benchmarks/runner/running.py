"""The runner: rounds of runs, one at a time, written down as they end."""

import json
import os

from pyexec.benchmarks.runner.orders import Orders
from pyexec.benchmarks.runner.sampling import Sample, Sampler, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ARTIFACTS = "PYEXEC_ARTIFACTS"
PLOT_SECONDS = 120.0
# Of the memory of one run, and of all runs: a line takes some 20 bytes for each.
POINTS = (120, 5000)
POINTS_OF_ALL = 1_000_000
FAILED = 1


def main() -> int:
    """Run what is ordered; return the exit status: that of the first run that failed, else 0."""
    with open(0, "rb", closefd=False) as file:
        orders = Orders(file.read().decode("utf-8", "surrogatepass"))
    # The folder is this execution's alone until the first program runs.
    log = os.open(orders.samples, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    _write(log, {"benchmark": {**orders.head, "load": os.getloadavg()[0], "cores": os.cpu_count()}})
    points = max(POINTS[0], min(POINTS[1], POINTS_OF_ALL // sum(map(len, orders.rounds))))
    sampler = Sampler(orders.interval, points, orders.timeout, os.path.join(orders.artifacts, ".stdin"))
    status = _run_rounds(orders, sampler, log)
    if status == 0 and orders.plot is not None:
        _draw(orders, orders.plot, sampler, log)
    return status


def _run_rounds(orders: Orders, sampler: Sampler, log: int) -> int:
    total = sum(map(len, orders.rounds))
    done = 0
    for number, programs in enumerate(orders.rounds):
        warming = number < orders.warmup
        run = number + 1 if warming else number - orders.warmup + 1
        for program in programs:
            done += 1
            _say(f"::progress {done}/{total} {_what(orders, program, run, warming=warming)}")
            show = number == 0 and program == 0
            sample = sampler.run(orders.programs[program], show=show)
            if sampler.stopped is not None:
                return 128 + sampler.stopped
            failed = sample.exit_code != 0 or sample.timed_out
            _write(log, _line(program, run, sample, warming=warming, failed=failed))
            if failed:
                if not show:
                    write_all(2, sample.stderr)
                return sample.exit_code or FAILED
    return 0


def _what(orders: Orders, program: int, run: int, *, warming: bool) -> str:
    names: list[str] = orders.head["names"]
    runs = orders.warmup if warming else len(orders.rounds) - orders.warmup
    return f"{'warm-up' if warming else 'run'} {run} of {runs}" + (f", {names[program]}" if len(names) > 1 else "")


def _draw(orders: Orders, plot: int, sampler: Sampler, log: int) -> None:
    """Draw the plot; that it cannot be drawn is written down and changes nothing else."""
    program = orders.programs[plot]
    program.env[ARTIFACTS] = orders.artifacts
    sample = sampler.run(program, show=False, timeout=PLOT_SECONDS)
    if sample.exit_code != 0:
        _write(log, {"plot_failed": sample.stderr.decode("utf-8", "replace")[-2000:] or "it gave no reason"})


def _line(program: int, run: int, sample: Sample, *, warming: bool, failed: bool) -> "dict[str, Any]":
    line: dict[str, Any] = {
        "program": program,
        "run": run,
        "warmup": warming,
        "wall": round(sample.wall, 7),
        "user": round(sample.user, 6),
        "system": round(sample.system, 6),
        "peak": sample.peak,
        "peak_known": sample.peak_known,
        "processes": sample.processes,
        "minor_faults": sample.minor_faults,
        "major_faults": sample.major_faults,
        "voluntary_switches": sample.voluntary_switches,
        "involuntary_switches": sample.involuntary_switches,
        "left_behind": sample.left_behind,
        "memory": [[round(at, 4), size] for at, size in sample.memory],
    }
    if failed:
        line["failed"] = {
            "exit_code": sample.exit_code,
            "signal": sample.signal,
            "timed_out": sample.timed_out,
            "not_started": sample.not_started,
            "stderr": sample.stderr.decode("utf-8", "replace"),
        }
    return line


def _say(text: str) -> None:
    write_all(2, f"{text}\n".encode("utf-8", "replace"))


def _write(log: int, line: "dict[str, Any]") -> None:
    write_all(log, (json.dumps(line, separators=(",", ":")) + "\n").encode("ascii"))
