"""A user's cells beside another user who has all they may have at work, and a hundred cells in line."""

import json
import statistics
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench import Bench
from figures import Figure, Target
from installation import BenchmarkError
from sandboxes import PACKAGES
from service import Caller, Place

IN_LINE = 100
AT_MOST = 2.0
WAIT_SECONDS = 280.0
PAUSE_SECONDS = 0.02
CELL = "import numpy\nx = numpy.arange(1000).sum(); x"
BURN = "import time\nuntil = time.process_time() + 1\nwhile time.process_time() < until: pass"


def measure(bench: Bench) -> list[Figure]:
    """Measure the 95th percentile of one user's cells, alone and beside the other one."""
    rounds = bench.rounds(full=200, quick=60)
    with _server(bench) as places:
        quiet, noisy = Caller(places["quiet"]), Caller(places["noisy"])
        _cells(quiet, 20)
        before = _cells(quiet, rounds)
        jobs = [noisy.call("execute_python", code=BURN, wait_seconds=0)["job_id"] for _call in range(IN_LINE)]
        quiet = Caller(places["quiet"])  # Connections that rest for long are closed.
        beside = _cells(quiet, rounds)
        left = _not_ended(noisy)
        for job_id in reversed(jobs):
            noisy.call("kill_job", job_id=job_id)
        after = _cells(Caller(places["quiet"]), rounds)
    if left < IN_LINE // 4:
        raise BenchmarkError(f"only {left} of the noisy user's cells were left at the end")
    alone = _percentile([*before, *after])
    figures = [("95th percentile", _percentile(beside), alone)]
    figures.append(("median", statistics.median(beside), statistics.median([*before, *after])))
    return [
        Figure(
            what=f"a cell in a session, {name}: beside a user with {IN_LINE} in line | alone",
            value=1000 * value,
            unit="ms",
            baseline=1000 * baseline,
            target=Target(f"<= {AT_MOST:g} x", value <= AT_MOST * baseline) if name != "median" else None,
            samples=len(beside),
        )
        for name, value, baseline in figures
    ]


def _cells(caller: Caller, rounds: int) -> list[float]:
    samples: list[float] = []
    for _round in range(rounds):
        begun = time.perf_counter()
        answer = caller.call("execute_python", code=CELL, session_id="quiet", wait_seconds=WAIT_SECONDS)
        samples.append(time.perf_counter() - begun)
        if answer["status"] != "completed":
            raise BenchmarkError(f"a cell did not complete: {answer}")
        time.sleep(PAUSE_SECONDS)
    return samples


def _not_ended(caller: Caller) -> int:
    found = caller.call("list_running_jobs")["result"]
    return len(found) if isinstance(found, list) else 0


def _percentile(samples: list[float]) -> float:
    return statistics.quantiles(samples, n=20)[-1]


@contextmanager
def _server(bench: Bench) -> Generator[dict[str, Place]]:
    home = bench.new_folder("neighbours")
    environ = bench.installation.environ(
        PYEXEC_HOME=str(home), PYEXEC_AUTH_DEVELOPMENT="yes", PYEXEC_SANDBOX_PACKAGES=" ".join(PACKAGES)
    )
    python = Path(bench.installation.pyexec).parent / "python"
    argv = [str(python), str(bench.programs / "service_for_two.py")]
    with (home / "stderr.log").open("ab") as errors:
        server = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert server.stdout is not None
        told = json.loads(server.stdout.readline())
        yield {name: Place(told["address"], token, server.pid) for name, token in told["tokens"].items()}
    finally:
        server.terminate()
        server.communicate()
