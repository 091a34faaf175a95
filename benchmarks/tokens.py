"""What verifying the token of a request costs: one seen for the first time, keys at hand, and one seen before."""

import json
import statistics
import subprocess
from dataclasses import replace

from bench import HERE, Bench
from figures import Figure, Target, in_milliseconds
from installation import BenchmarkError

LIMIT_MILLISECONDS = 0.5
SECONDS = 120.0


def measure(bench: Bench) -> list[Figure]:
    done = subprocess.run(
        [bench.installation.python, str(HERE / "inside" / "verify_tokens.py"), str(bench.rounds(full=51, quick=11))],
        env=bench.installation.environ(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise BenchmarkError(f"verifying failed: {done.stderr.decode('utf-8', 'replace')[-2000:]}")
    taken: dict[str, list[float]] = json.loads(done.stdout)
    met = 1000 * statistics.median(taken["known"]) <= LIMIT_MILLISECONDS
    known = in_milliseconds("verifying a token seen before: CPU", taken["known"])
    return [
        in_milliseconds("verifying a token seen for the first time, keys at hand: CPU", taken["new"]),
        replace(known, target=Target(f"<= {LIMIT_MILLISECONDS:g} ms", met)),
    ]
