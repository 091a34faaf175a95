"""Many at once over one connection: sixteen hello scripts, all asked for before the first is answered."""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from bench import Bench
from figures import Figure, Target, interleave
from installation import BenchmarkError
from mcp_client import McpClient

CALLS = 16
EXPECTED = "Hello, world\n"


def measure(bench: Bench) -> list[Figure]:
    failures: list[str] = []
    plain = [bench.installation.python, "hello.py"]
    with bench.serve(bench.new_folder("home")) as client:
        bench.greet(client)
        ours, theirs = interleave(
            bench.rounds(full=15, quick=4),
            lambda: _burst(bench, client, failures),
            lambda: _side_by_side(bench, plain),
        )
    made = CALLS * len(ours)
    for failure in failures[:3]:
        print(f"burst: {failure}", file=sys.stderr)
    return [
        Figure(
            what=f"burst of {CALLS}: calls that failed, of {made}",
            value=len(failures),
            unit="calls",
            target=Target("none", not failures),
            samples=len(ours),
        ),
        Figure(
            what=f"burst of {CALLS}: throughput, against {CALLS} python hello.py at once",
            value=CALLS / statistics.median(ours),
            baseline=CALLS / statistics.median(theirs),
            unit="calls/s",
            samples=len(ours),
        ),
    ]


def _burst(bench: Bench, client: McpClient, failures: list[str]) -> float:
    started = time.perf_counter()
    requests = [client.start("run_script_in_dir", **bench.hello()) for _call in range(CALLS)]
    for request in requests:
        try:
            answer = client.result(request)
        except BenchmarkError as error:
            failures.append(str(error))
        else:
            if answer["stdout"] != EXPECTED or answer["exit_code"] != 0:
                failures.append(str(answer))
    return time.perf_counter() - started


def _side_by_side(bench: Bench, argv: Sequence[str]) -> float:
    environ = bench.installation.environ()
    started = time.perf_counter()
    running = [
        subprocess.Popen(argv, cwd=bench.programs, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        for _call in range(CALLS)
    ]
    for process in running:
        process.communicate()
    return time.perf_counter() - started
