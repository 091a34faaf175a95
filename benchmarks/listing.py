"""How soon the newest jobs are listed when there are many."""

import json
import statistics
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from bench import HERE, Bench
from figures import Figure, Target, in_milliseconds
from installation import BenchmarkError
from processes import run

RECORDS = 10_000
LISTED = 50
LIMIT_MILLISECONDS = 20.0
INSIDE_SECONDS = 120.0


def measure(bench: Bench) -> list[Figure]:
    home = bench.new_folder("home")
    rounds = bench.rounds(full=101, quick=31)
    environ = bench.installation.environ(PYEXEC_HOME=str(home))
    python = bench.installation.python
    run([python, str(HERE / "inside" / "fill_store.py"), str(home), str(RECORDS)], environ)
    done = subprocess.run(
        [python, str(HERE / "inside" / "list_newest.py"), str(LISTED), str(rounds)],
        env=environ,
        capture_output=True,
        timeout=INSIDE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise BenchmarkError(f"listing failed: {done.stderr.decode('utf-8', 'replace')[-2000:]}")
    service: list[float] = json.loads(done.stdout)
    return [
        _figure("through py_list_jobs", _over_mcp(bench, home, rounds)),
        _figure("through the service", service),
    ]


def _over_mcp(bench: Bench, home: Path, rounds: int) -> list[float]:
    samples: list[float] = []
    with bench.serve(home) as client:
        bench.greet(client)
        for _round in range(rounds):
            started = time.perf_counter()
            answer = client.call("py_list_jobs", limit=LISTED)
            samples.append(time.perf_counter() - started)
            if len(answer["jobs"]) != LISTED or answer["total"] < RECORDS:
                raise BenchmarkError(f"{len(answer['jobs'])} jobs of {answer['total']} were listed")
    return samples


def _figure(how: str, samples: list[float]) -> Figure:
    met = 1000 * statistics.median(samples) <= LIMIT_MILLISECONDS
    shown = in_milliseconds(f"newest {LISTED} of {RECORDS:,} {how}", samples)
    return replace(shown, target=Target(f"<= {LIMIT_MILLISECONDS:g} ms", met))
