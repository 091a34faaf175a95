"""From the report of a benchmark to its structured result."""

import re
from typing import TYPE_CHECKING, Any

from pyexec.mcp import results
from pyexec.mcp.results_benchmark import BenchmarkResult, BenchmarkVariant, Spread
from pyexec.mcp.views import TIMEOUT_MARK

if TYPE_CHECKING:
    from pyexec.benchmarks.report import Report, VariantReport
    from pyexec.benchmarks.statistics import Summary

MEASURED = (
    "Each run is a new process: start of the interpreter, imports and all children count; making environments and "
    "pyexec itself do not. Wall time from exec to exit, CPU as the kernel accounts it, peak memory of all processes "
    "together."
)
MOST_POINTS = 40
UNREADABLE = "What the benchmark has measured cannot be read."
_PROGRESS = re.compile(r"^::progress \d+/\d+ (?:warm-up|run) .*\n?", re.MULTILINE)


def benchmark_result(run: results.RunResult, report: "Report | None") -> BenchmarkResult:
    """Return the result of a benchmark, from that of its execution and from what it has found."""
    stderr = _PROGRESS.sub("", run.stderr)
    ours = len(run.stderr.encode()) - len(stderr.encode())
    told = {"stderr": stderr, "stderr_bytes": max(0, run.stderr_bytes - ours)}
    result = BenchmarkResult.model_validate(run.model_dump() | told)
    if report is None:
        return result.model_copy(update={"error": UNREADABLE}) if run.status == "completed" else result
    told: dict[str, Any] = {"runs": report.runs, "warmup_runs": report.warmup}
    failure = report.failure
    if failure is not None:
        told |= {
            "failed_run": failure.run,
            "error": failure.sentence(report.runs, len(report.names)),
            "stderr": f"{failure.stderr}{TIMEOUT_MARK}" if failure.timed_out else failure.stderr,
        }
        return result.model_copy(update=told)
    if not report.variants:
        return result.model_copy(update=told)
    first = report.variants[0]
    return result.model_copy(
        update=told
        | {
            "wall_time_seconds": round(first.wall.median, 6),
            "cpu_time_seconds": round(first.cpu.median, 6),
            "peak_rss_mb": _megabytes(first.peak),
            "variants": [_variant(variant) for variant in report.variants],
            "measured": MEASURED,
            "notes": [*(run.notes or []), *report.notes] or None,
        }
    )


def _variant(variant: "VariantReport") -> BenchmarkVariant:
    comparison = variant.comparison
    return BenchmarkVariant(
        name=variant.name,
        wall=_spread(variant.wall),
        cpu=_spread(variant.cpu),
        user_cpu_seconds=round(variant.user, 6),
        system_cpu_seconds=round(variant.system, 6),
        peak_rss_mb=_megabytes(variant.peak),
        processes=variant.processes,
        minor_page_faults=variant.minor_faults,
        major_page_faults=variant.major_faults,
        voluntary_switches=variant.voluntary_switches,
        involuntary_switches=variant.involuntary_switches,
        outlier_runs=list(variant.outliers),
        memory_mb=_points(variant.memory),
        verdict=comparison.verdict if comparison else None,
        ratio=round(comparison.ratio, 4) if comparison else None,
        ratio_low=_rounded(comparison.low if comparison else None, 4),
        ratio_high=_rounded(comparison.high if comparison else None, 4),
    )


def _spread(summary: "Summary") -> Spread:
    return Spread(
        median=round(summary.median, 6),
        min=round(summary.minimum, 6),
        max=round(summary.maximum, 6),
        mad=round(summary.mad, 6),
        ci_low=_rounded(summary.low, 6),
        ci_high=_rounded(summary.high, 6),
    )


def _points(memory: "tuple[tuple[float, int], ...]") -> list[list[float]]:
    """Return what an answer carries of a long series: the most of each part."""
    size = -(-len(memory) // MOST_POINTS) or 1
    parts = [memory[start : start + size] for start in range(0, len(memory), size)]
    return [[round(at, 3), _megabytes(most)] for at, most in (max(part, key=lambda point: point[1]) for part in parts)]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _megabytes(size: int) -> float:
    return round(size / 2**20, 2)
