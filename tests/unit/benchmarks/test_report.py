import json
from typing import Any

import pytest

from pyexec.benchmarks.report import Report, read_report
from pyexec.benchmarks.statistics import NO_DIFFERENCE

LINE = {
    "wall": 1.0,
    "user": 0.5,
    "system": 0.25,
    "peak": 2**20,
    "peak_known": True,
    "processes": 1,
    "minor_faults": 100,
    "major_faults": 0,
    "voluntary_switches": 1,
    "involuntary_switches": 2,
    "left_behind": 0,
    "memory": [[0.1, 1000], [0.2, 2000]],
}


def left(*lines: dict[str, Any], names: tuple[str, ...] = ("a",), runs: int = 1, **head: Any) -> Report:
    """Read what a runner has left; what a line does not say is as in `LINE`."""
    told = {"names": names, "runs": runs, "warmup": 0, "interval": 0.05, "plot": False, "load": 0.1, "cores": 2, **head}
    full = [{"program": 0, "warmup": False, **LINE, **line} for line in lines]
    data = "".join(f"{json.dumps(line)}\n" for line in ({"benchmark": told}, *full))
    report = read_report(data.encode())
    assert report is not None
    return report


def rounds(*rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of several programs, from the rows of each."""
    return [
        {"program": program, "run": run, **line} for program, row in enumerate(rows) for run, line in enumerate(row, 1)
    ]


def test_figures_are_those_of_the_runs_that_count() -> None:
    warm_up = {"run": 1, "warmup": True, "wall": 9.0}
    runs = [{"run": run, "wall": run * 1.0, "peak": run * 2**20} for run in (1, 2, 3)]
    (variant,) = left(warm_up, *runs, runs=3, warmup=1).variants
    assert (variant.wall.median, variant.wall.maximum, variant.cpu.median) == (2.0, 3.0, 0.75)
    assert (variant.peak, variant.minor_faults, variant.memory) == (3 * 2**20, 100, ((0.1, 1000), (0.2, 2000)))
    assert variant.comparison is None


def test_before_all_runs_are_done_there_are_no_figures() -> None:
    assert left({"run": 1}, {"run": 2}, runs=3).variants == ()


@pytest.mark.case("B134")
def test_with_a_run_that_failed_there_are_no_figures() -> None:
    failed = {"exit_code": 3, "signal": None, "timed_out": False, "not_started": None, "stderr": "why"}
    report = left({"run": 1}, {"run": 2, "failed": failed}, runs=2)
    assert report.variants == ()
    assert report.failure is not None
    assert (report.failure.run, report.failure.exit_code, report.failure.stderr) == (2, 3, "why")
    assert report.failure.sentence(2, 1) == "Run 2 of 2 failed with exit code 3; no figures are given."
    assert report.failure.sentence(2, 2) == "Run 2 of 2 of a failed with exit code 3; no figures are given."


def test_notes_say_what_the_figures_do_not() -> None:
    report = left(
        {"run": 1, "warmup": True, "wall": 5.0, "left_behind": 1},
        *({"run": run, "wall": 3.0 if run == 1 else 1 + run / 1000, "peak_known": False} for run in range(1, 8)),
        runs=7,
        warmup=1,
        load=9.0,
    )
    assert report.notes == (
        "The first run, a warm-up that does not count, took 5 s against a median of 1.005 s.",
        "Outliers among 7 runs: 1 (they count in the median all the same). The first one is often cold: use warmup.",
        "Processes left behind were ended after each run: 1 in all.",
        "The peak memory is an upper bound: so small a process cannot be told from its beginning.",
        "The machine was busy at the start (load 9.0 on 2 cores): wall times are rough.",
    )


def test_cpu_time_is_told_where_wall_time_says_nothing() -> None:
    first = [{"wall": 1 + run % 3, "user": 1.0} for run in range(15)]
    other = [{"wall": 1 + (run + 1) % 3, "user": 2.0} for run in range(15)]
    report = left(*rounds(first, other), names=("a", "b"), runs=15)
    comparison = report.variants[1].comparison
    assert comparison is not None
    assert comparison.verdict == NO_DIFFERENCE
    assert report.notes == (
        "By its CPU time b is slower all the same: 1.800 times that of the first (1.800 to 1.800).",
    )


@pytest.mark.parametrize(
    "line", [{"wall": "1"}, {"wall": -1}, {"peak": None}, {"memory": [[1]]}, {"memory": 7}, {"user": True}, {"wall": 0}]
)
def test_a_line_that_makes_no_sense_is_no_report(line: dict[str, Any]) -> None:
    samples = [{"program": program, "run": 1, "warmup": False, **LINE, **line} for program in (0, 1)]
    head = {"benchmark": {"names": ["a", "b"], "runs": 1, "warmup": 0, "interval": 1, "load": 0, "cores": 1}}
    assert read_report("".join(f"{json.dumps(one)}\n" for one in (head, *samples)).encode()) is None
