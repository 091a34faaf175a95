"""What measuring does to what is measured: CPU time of a program by benchmark_script, and by getrusage of the bare
command; and how often two variants that are the same are called different."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import Bench
from figures import Figure, Target, in_milliseconds, interleave
from installation import BenchmarkError
from mcp_client import McpClient
from processes import run

RUNS = 15
MEDIAN_OF = 5
SAME = "no difference beyond noise"


def measure(bench: Bench) -> list[Figure]:
    installation = bench.installation
    environ = installation.environ()
    bare = [installation.python, "compute.py"]
    asked: dict[str, Any] = {
        "directory": str(bench.programs),
        "script_path": "compute.py",
        "python_version": installation.python,
        "wait_seconds": 300,
    }
    with bench.serve(bench.new_folder("home")) as client:
        bench.greet(client)
        for _warm_up in range(3):
            _call(client, asked)
            run(bare, environ, cwd=bench.programs)
        ours, theirs = interleave(
            bench.rounds(full=67, quick=7),
            lambda: _call(client, {**asked, "runs": MEDIAN_OF})["cpu_time_seconds"],
            lambda: _bare_cpu(bare, environ, bench.programs),
        )
        comparisons = bench.rounds(full=20, quick=3)
        different = sum(_verdict(client, asked) != SAME for _comparison in range(comparisons))
    most = comparisons // 20 if comparisons >= 20 else 0
    return [
        in_milliseconds("CPU time of a 50 ms program: against getrusage of the command", ours, theirs, at_most=1.02),
        Figure(
            what=f"the same program twice, called different in {comparisons} comparisons of {RUNS} runs",
            value=different,
            unit="calls",
            target=Target(f"<= {most}", different <= most),
            samples=comparisons,
        ),
    ]


def _bare_cpu(argv: Sequence[str], environ: Mapping[str, str], cwd: Path) -> float:
    """Return the median of as many runs as are in a benchmark, after one that does not count there either."""
    return statistics.median([run(argv, environ, cwd=cwd).cpu for _run in range(MEDIAN_OF + 1)][1:])


def _verdict(client: McpClient, asked: dict[str, Any]) -> str:
    _first, second = _call(client, {**asked, "runs": RUNS, "compare": [{"name": "the same"}]})["variants"]
    return second["verdict"]


def _call(client: McpClient, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = client.call("benchmark_script", **arguments)
    if answer["status"] != "completed":
        raise BenchmarkError(f"the run ended as {answer['status']}: {answer.get('error')}")
    return answer
