"""The structured result of `benchmark_script`."""

from pydantic import BaseModel

from pyexec.benchmarks.statistics import Verdict
from pyexec.mcp.results import Optional, RunResult


class Spread(BaseModel):
    """A row of samples: seconds."""

    median: float
    min: float
    max: float
    mad: float
    ci_low: Optional[float] = None
    ci_high: Optional[float] = None


class BenchmarkVariant(BaseModel):
    """What was measured of one program."""

    name: str
    wall: Spread
    cpu: Spread
    user_cpu_seconds: float
    system_cpu_seconds: float
    peak_rss_mb: float
    processes: int
    minor_page_faults: float
    major_page_faults: float
    voluntary_switches: float
    involuntary_switches: float
    outlier_runs: list[int]
    memory_mb: list[list[float]]
    verdict: Optional[Verdict] = None
    ratio: Optional[float] = None
    ratio_low: Optional[float] = None
    ratio_high: Optional[float] = None


class BenchmarkResult(RunResult):
    """A benchmark, or the handle to one that goes on. The plain figures are those of the first variant."""

    wall_time_seconds: Optional[float] = None
    cpu_time_seconds: Optional[float] = None
    peak_rss_mb: Optional[float] = None
    runs: Optional[int] = None
    warmup_runs: Optional[int] = None
    failed_run: Optional[int] = None
    variants: Optional[list[BenchmarkVariant]] = None
    measured: Optional[str] = None
