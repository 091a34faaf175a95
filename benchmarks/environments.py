"""What packages cost once they are there: a hello script that needs one, against uv bringing it from its cache."""

import json
import os
import statistics
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import HERE, Bench
from figures import Figure, Target, in_milliseconds, interleave
from installation import BenchmarkError
from mcp_client import McpClient
from processes import run

PACKAGE = "requests"
FOUND_MILLISECONDS = 5.0
INSIDE_SECONDS = 120.0


def measure(bench: Bench) -> list[Figure]:
    home = bench.new_folder("home")
    own, base = bench.installation.python, os.path.realpath(bench.installation.python)
    name = f"hello with {PACKAGE}, warm: against uv run --offline --with {PACKAGE}"
    ours, uv = _compare(bench, home, own)
    # uv starts its interpreter with what that has in its site-packages, and some installations have much.
    ours_base, uv_base = _compare(bench, home, base)
    return [
        in_milliseconds(name, ours, uv, at_most=0.5),
        in_milliseconds("the same on the Python below it", ours_base, uv_base),
        _found(bench, str(home)),
    ]


def _compare(bench: Bench, home: Path, python: str) -> tuple[list[float], list[float]]:
    installation = bench.installation
    environ = installation.environ()
    source = (bench.programs / "hello.py").read_text(encoding="utf-8")
    asked: dict[str, Any] = {
        "script_content": source,
        "dependencies": [PACKAGE],
        "python_version": python,
        "wait_seconds": 300,
    }
    with_uv = [installation.uv, "run", "--offline", "--no-project", "--python", python, "--with", PACKAGE]
    with bench.serve(home) as client:
        bench.greet(client)
        _call(client, asked)  # Makes the environment, and fills uv's cache for both.
        run([*with_uv, "hello.py"], environ, cwd=bench.programs)
        ours, uv = interleave(
            bench.rounds(full=41, quick=11),
            lambda: _call(client, asked),
            lambda: run([*with_uv, "hello.py"], environ, cwd=bench.programs).wall,
        )
    return ours, uv


def _call(client: McpClient, arguments: dict[str, Any]) -> float:
    started = time.perf_counter()
    answer = client.call("run_script_with_dependencies", **arguments)
    if answer["status"] != "completed":
        raise BenchmarkError(f"the run ended as {answer['status']}: {answer.get('error')}")
    return time.perf_counter() - started


def _found(bench: Bench, home: str) -> Figure:
    """Measure how long a plan takes that finds an environment, in the server's own process."""
    installation = bench.installation
    rounds = bench.rounds(full=201, quick=51)
    done = subprocess.run(
        [installation.python, str(HERE / "inside" / "find_environment.py"), PACKAGE, str(rounds)],
        env=installation.environ(PYEXEC_HOME=home),
        capture_output=True,
        timeout=INSIDE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise BenchmarkError(f"finding failed: {done.stderr.decode('utf-8', 'replace')[-2000:]}")
    samples: list[float] = json.loads(done.stdout)
    met = 1000 * statistics.median(samples) <= FOUND_MILLISECONDS
    shown = in_milliseconds("a warm environment is found", samples)
    return replace(shown, target=Target(f"<= {FOUND_MILLISECONDS:g} ms", met))
