"""A benchmark as markdown."""

from pyexec.mcp.rendering import render_run
from pyexec.mcp.results import RunResult
from pyexec.mcp.results_benchmark import BenchmarkResult, BenchmarkVariant, Spread


def render_benchmark(result: BenchmarkResult) -> str:
    """Return a benchmark as markdown: the figures, what they mean, then the run they are of."""
    plain = RunResult.model_validate({name: getattr(result, name) for name in RunResult.model_fields})
    if not result.variants:
        return render_run(plain)
    counted = "1 run" if result.runs == 1 else f"Medians of {result.runs} runs"
    warmed = f" after {result.warmup_runs} to warm up" if result.warmup_runs else ""
    parts = [f"{counted}{warmed} of each:" if len(result.variants) > 1 else f"{counted}{warmed}:"]
    parts.append(_table(result.variants, result.runs or 1))
    parts += [_verdict(variant, result.variants[0].name) for variant in result.variants[1:]]
    parts += [result.measured or "", render_run(plain)]
    return "\n\n".join(parts)


def _table(variants: list[BenchmarkVariant], runs: int) -> str:
    rows = [
        ("", *(variant.name for variant in variants)),
        ("wall", *(_seconds(variant.wall.median) for variant in variants)),
        *(_spreads(variants) if runs > 1 else ()),
        ("CPU", *(_seconds(variant.cpu.median) for variant in variants)),
        (
            "user + system",
            *(f"{_seconds(one.user_cpu_seconds)} + {_seconds(one.system_cpu_seconds)}" for one in variants),
        ),
        ("peak memory", *(f"{variant.peak_rss_mb:.1f} MB" for variant in variants)),
        ("page faults, minor / major", *(f"{one.minor_page_faults:g} / {one.major_page_faults:g}" for one in variants)),
        (
            "context switches, voluntary / not",
            *(f"{one.voluntary_switches:g} / {one.involuntary_switches:g}" for one in variants),
        ),
    ]
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def _spreads(variants: list[BenchmarkVariant]) -> list[tuple[str, ...]]:
    return [
        ("wall, min … max", *(_between(variant.wall.min, variant.wall.max) for variant in variants)),
        ("wall, MAD", *(_seconds(variant.wall.mad) for variant in variants)),
        ("wall, 95 % interval of the median", *(_interval(variant.wall) for variant in variants)),
    ]


def _verdict(variant: BenchmarkVariant, first: str) -> str:
    interval = ""
    if variant.ratio_low is not None and variant.ratio_high is not None:
        interval = f"; 99 % interval {variant.ratio_low:.3f} … {variant.ratio_high:.3f}"
    return f"**{variant.name}: {variant.verdict}**: {variant.ratio or 0:.3f} times the time of {first}{interval}."


def _seconds(value: float) -> str:
    return f"{value:.3f} s" if value >= 1 else f"{value * 1000:.2f} ms"


def _between(low: float, high: float) -> str:
    return f"{_seconds(low)} … {_seconds(high)}"


def _interval(spread: Spread) -> str:
    if spread.ci_low is None or spread.ci_high is None:
        return "too few runs"
    return _between(spread.ci_low, spread.ci_high)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
