"""From the samples that a runner has left to the report of a benchmark.

The programs could write there too, so the file is taken for what it says only where that makes sense.
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pyexec.benchmarks.statistics import FEWEST_ROUNDS, NO_DIFFERENCE, Comparison, Summary, compare, outliers, summarize

LARGEST = 64 * 1024 * 1024
BUSY = 0.75
STDERR_CHARACTERS = 20_000
_NUMBERS = ("wall", "user", "system", "peak", "processes", "minor_faults", "major_faults")
_SWITCHES = ("voluntary_switches", "involuntary_switches")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The run that failed. `run` counts from 1 among the warm-up runs or among the others."""

    variant: str
    run: int
    warmup: bool
    exit_code: int | None
    signal: str | None
    timed_out: bool
    stderr: str

    def sentence(self, runs: int, variants: int) -> str:
        """Say which run it was and what happened."""
        of = f" of {self.variant}" if variants > 1 else ""
        which = f"Warm-up run {self.run}" if self.warmup else f"Run {self.run} of {runs}"
        what = "took too long and was ended" if self.timed_out else f"failed with exit code {self.exit_code}"
        by = f" ({self.signal})" if self.signal else ""
        return f"{which}{of} {what}{by}; no figures are given."


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantReport:
    """The figures of one program, over the runs that count. Seconds and bytes; counts are medians.

    Attributes:
        peak: The most memory of any run; `peak_known` is False when it is only what none can have exceeded.
        outliers: Which runs lie far outside, counted from 1.
        memory: Seconds and bytes, of the run with the median time.
        comparison: Against the first; None for the first itself.
    """

    name: str
    wall: Summary
    cpu: Summary
    user: float
    system: float
    peak: int
    peak_known: bool
    processes: int
    minor_faults: float
    major_faults: float
    voluntary_switches: float
    involuntary_switches: float
    outliers: tuple[int, ...]
    memory: tuple[tuple[float, int], ...]
    comparison: Comparison | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a benchmark has found. `variants` is empty until all runs are done, and when one has failed."""

    runs: int
    warmup: int
    interval: float
    names: tuple[str, ...]
    variants: tuple[VariantReport, ...] = ()
    failure: Failure | None = None
    notes: tuple[str, ...] = ()


def read_report(data: bytes) -> Report | None:
    """Read what a runner has written so far; None when that makes no sense, or is not there yet."""
    try:
        head, *lines = [_mapping(json.loads(line)) for line in data.split(b"\n")[:-1]]
        return _report(_mapping(head["benchmark"]), lines)
    except (ValueError, KeyError, TypeError, RecursionError, ArithmeticError):
        return None


def _report(head: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> Report:
    names = tuple(str(name) for name in head["names"])
    runs, warmup = int(head["runs"]), int(head["warmup"])
    interval = _number(head["interval"])
    samples = [line for line in lines if "run" in line]
    failed = next((line for line in samples if "failed" in line), None)
    plain = Report(runs=runs, warmup=warmup, interval=interval, names=names)
    if failed is not None:
        return _with_failure(plain, failed)
    rows = [[line for line in samples if line["program"] == number] for number in range(len(names))]
    counted = [[line for line in row if not line["warmup"]] for row in rows]
    if any(len(row) != runs for row in counted):
        return plain
    first = [_number(line["wall"]) for line in counted[0]]
    variants = tuple(
        _variant(name, row, None if number == 0 else first)
        for number, (name, row) in enumerate(zip(names, counted, strict=True))
    )
    notes = [note for variant, row in zip(variants, rows, strict=True) for note in _notes(variant, row, runs, names)]
    notes += [
        note
        for variant, row in zip(variants[1:], counted[1:], strict=True)
        if (note := _by_cpu(variant, counted[0], row))
    ]
    load, cores = _number(head["load"]), int(head["cores"])
    if load > BUSY * cores:
        notes.append(f"The machine was busy at the start (load {load:.1f} on {cores} cores): wall times are rough.")
    if len(names) > 1 and runs < FEWEST_ROUNDS:
        notes.append(f"With fewer than {FEWEST_ROUNDS} runs no difference can be told from noise; runs={runs}.")
    notes += [f"The plot could not be drawn: {line['plot_failed']}" for line in lines if "plot_failed" in line]
    return Report(runs=runs, warmup=warmup, interval=interval, names=names, variants=variants, notes=tuple(notes))


def _with_failure(report: Report, line: Mapping[str, Any]) -> Report:
    told = _mapping(line["failed"])
    code, signal = told["exit_code"], told["signal"]
    failure = Failure(
        variant=report.names[int(line["program"])],
        run=int(line["run"]),
        warmup=bool(line["warmup"]),
        exit_code=None if code is None else int(code),
        signal=None if signal is None else str(signal),
        timed_out=bool(told["timed_out"]),
        stderr=str(told["not_started"] or told["stderr"])[-STDERR_CHARACTERS:],
    )
    return Report(runs=report.runs, warmup=report.warmup, interval=report.interval, names=report.names, failure=failure)


def _variant(name: str, row: Sequence[Mapping[str, Any]], first: Sequence[float] | None) -> VariantReport:
    columns = {key: [_number(line[key]) for line in row] for key in (*_NUMBERS, *_SWITCHES)}
    wall = columns["wall"]
    middle = sorted(row, key=lambda line: _number(line["wall"]))[len(row) // 2]
    medians = {key: statistics.median(values) for key, values in columns.items()}
    return VariantReport(
        name=name,
        wall=summarize(wall),
        cpu=summarize([user + system for user, system in zip(columns["user"], columns["system"], strict=True)]),
        user=medians["user"],
        system=medians["system"],
        peak=int(max(columns["peak"])),
        peak_known=any(line["peak_known"] for line in row),
        processes=int(max(columns["processes"])),
        minor_faults=medians["minor_faults"],
        major_faults=medians["major_faults"],
        voluntary_switches=medians["voluntary_switches"],
        involuntary_switches=medians["involuntary_switches"],
        outliers=tuple(place + 1 for place in outliers(wall)),
        memory=tuple((_number(at), int(_number(size))) for at, size in middle["memory"]),
        comparison=None if first is None else compare(first, wall),
    )


def _by_cpu(variant: VariantReport, first: Sequence[Mapping[str, Any]], row: Sequence[Mapping[str, Any]]) -> str | None:
    """Say what CPU time says where wall time says nothing: other work on the machine makes that uncertain first."""
    if variant.comparison is None or variant.comparison.verdict != NO_DIFFERENCE:
        return None
    rows = [[_number(line["user"]) + _number(line["system"]) for line in one] for one in (first, row)]
    if not all(map(all, rows)):
        return None
    found = compare(*rows)
    if found.verdict == NO_DIFFERENCE or found.low is None or found.high is None:
        return None
    return (
        f"By its CPU time {variant.name} is {found.verdict} all the same: {found.ratio:.3f} times that of the first "
        f"({found.low:.3f} to {found.high:.3f})."
    )


def _notes(variant: VariantReport, row: Sequence[Mapping[str, Any]], runs: int, names: tuple[str, ...]) -> list[str]:
    """Return what the reader of the figures should know about one variant."""
    of = f" of {variant.name}" if len(names) > 1 else ""
    notes: list[str] = []
    warm = [_number(line["wall"]) for line in row if line["warmup"]]
    if warm and 0 in outliers([warm[0], *(_number(line["wall"]) for line in row if not line["warmup"])]):
        notes.append(
            f"The first run{of}, a warm-up that does not count, took {warm[0]:.4g} s against a median of "
            f"{variant.wall.median:.4g} s."
        )
    if variant.outliers:
        listed = ", ".join(str(place) for place in variant.outliers[:20])
        first = " The first one is often cold: use warmup." if variant.outliers[0] == 1 else ""
        notes.append(f"Outliers{of} among {runs} runs: {listed} (they count in the median all the same).{first}")
    left = sum(_number(line["left_behind"]) for line in row)
    if left:
        notes.append(f"Processes left behind{of} were ended after each run: {left:g} in all.")
    if not variant.peak_known:
        notes.append(f"The peak memory{of} is an upper bound: so small a process cannot be told from its beginning.")
    return notes


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError("not a figure")
    return value


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return cast("dict[str, Any]", value)
