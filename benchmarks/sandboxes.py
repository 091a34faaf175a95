"""A fresh sandbox with the data stack imported, against a fresh Python process that imports it, without any wall; and,
where there is an engine, against a container for each call."""

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench import HERE, Bench
from containers import containers
from figures import Figure, Target, in_milliseconds, interleave
from installation import BenchmarkError

PACKAGES = ("ipython", "numpy", "pandas", "matplotlib")
FIND = """
import os
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.processes.probe import python_version
from pyexec.domain.sandboxes import PYTHON
print(InterpreterFinder(os.environ, None, python_version).find(PYTHON).path)
"""
STACK = "numpy, pandas and matplotlib"
STEP_SECONDS = 300.0
SETTLE_SECONDS = 0.4
TIMES_FASTER = 50
CODE = "import numpy, pandas, matplotlib.pyplot; 1 + 1"


def measure(bench: Bench) -> list[Figure]:
    environment = bench.new_folder("environment")
    uv = bench.installation.uv
    found = _run(bench, [bench.installation.python, "-c", FIND]).decode().strip()
    _run(bench, [uv, "venv", "--quiet", "--no-project", "--python", found, str(environment)])
    python = environment / "bin" / "python"
    _run(bench, [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *PACKAGES])
    packages = next(environment.glob("lib/python*/site-packages"))
    rounds = bench.rounds(full=41, quick=5)
    inside = [bench.installation.python, str(HERE / "inside" / "sandboxes.py"), str(python), str(packages), str(rounds)]
    samples: dict[str, list[float]] = json.loads(_run(bench, inside))
    forked, ready, killed, memory, plain = (samples[name] for name in ("forked", "ready", "killed", "memory", "plain"))
    what = f"sandbox with {STACK}, forked: to the value of 1 + 1, against python importing them"
    return [
        _promised(in_milliseconds(what, forked, plain), 60.0),
        _promised(in_milliseconds("the same to the guest's first word", samples["hello"], plain), 50.0),
        _promised(in_milliseconds("the value of 1 + 1 from one kept ready", ready, plain), 25.0),
        _promised(in_milliseconds("the same having imported pandas and pyplot", samples["imports"], plain), 30.0),
        _promised(in_milliseconds("a sandbox is gone after it is killed", killed), 50.0),
        *_against_containers(bench, python, samples["imports"], samples["forked"]),
        *_at_the_tool(bench),
        _memory(memory),
        _throughput(samples["throughput"]),
    ]


def _against_containers(bench: Bench, python: Path, ready: list[float], forked: list[float]) -> list[Figure]:
    """Compare with a container for each call, which has the same interpreter and packages; where there is an engine."""
    prefix = _run(bench, [python, "-c", "import sys; print(sys.base_prefix)"]).decode().strip()
    folders = [python.parents[1], *([Path(prefix)] if not Path(prefix).is_relative_to("/usr") else [])]
    with containers(folders) as found:
        if found is None:
            return []
        code = "import IPython, numpy, pandas, matplotlib.pyplot; print(1 + 1)"
        found.seconds([str(python), "-c", code], "2")
        taken = [found.seconds([str(python), "-c", code], "2") for _ in range(bench.rounds(full=21, quick=3))]
    what = f"fresh sandbox to the value of 1 + 1 with {STACK}, against {found.engine} run"
    return [
        _times_faster(in_milliseconds(f"{what}: kept ready", ready, taken), TIMES_FASTER),
        in_milliseconds(f"{what}: forked", forked, taken),
    ]


def _times_faster(figure: Figure, times: int) -> Figure:
    assert figure.baseline is not None
    return replace(figure, target=Target(f"<= 1/{times}", figure.value * times <= figure.baseline))


def _at_the_tool(bench: Bench) -> list[Figure]:
    """Measure what a client waits for: a cell in a fresh sandbox, against a tool that does next to nothing."""
    cells, nothings = _cells(bench, SETTLE_SECONDS)
    forked, idle = _cells(bench, 0.0, PYEXEC_SANDBOX_READY="0")
    what = f"execute_python with {STACK} imported, in a fresh sandbox that was ready: at the tool"
    return [
        _promised(in_milliseconds(f"{what}, against list_running_jobs", cells, nothings), 25.0),
        _promised(in_milliseconds("the same in one that is forked for it", forked, idle), 60.0),
    ]


def _cells(bench: Bench, pause: float, **more: str) -> tuple[list[float], list[float]]:
    settings = {"PYEXEC_TOOLSETS": "default,execute", "PYEXEC_SANDBOX_PACKAGES": " ".join(PACKAGES), **more}
    with bench.serve(bench.new_folder("home"), **settings) as client:
        client.initialize()
        client.initialized()

        def cell() -> float:
            time.sleep(pause)  # Until another sandbox is ready again.
            return _timed(lambda: client.call("execute_python", code=CODE, wait_seconds=STEP_SECONDS))

        def nothing() -> float:
            return _timed(lambda: client.call("list_running_jobs"))

        cell()
        cells, nothings = interleave(bench.rounds(full=41, quick=5), cell, nothing)
    return cells, nothings


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _promised(figure: Figure, milliseconds: float) -> Figure:
    return replace(figure, target=Target(f"<= {milliseconds:g} ms", figure.value <= milliseconds))


def _memory(samples: list[float]) -> Figure:
    value = statistics.median(samples) / 1e6
    target = Target("<= 15 MB", 0 < value <= 15)
    return Figure(
        what="memory that a sandbox has to itself", value=value, unit="MB", target=target, samples=len(samples)
    )


def _throughput(samples: list[float]) -> Figure:
    value = statistics.median(samples)
    target = Target(">= 25 calls/s", value >= 25)
    what = f"fresh sandboxes with {STACK}, each used once and gone, by four at once"
    return Figure(what=what, value=value, unit="calls/s", target=target, samples=len(samples))


def _run(bench: Bench, command: Sequence[str | Path]) -> bytes:
    done = subprocess.run(
        command, env=bench.installation.environ(), capture_output=True, timeout=STEP_SECONDS, check=False
    )
    if done.returncode != 0:
        raise BenchmarkError(f"{command[1]} failed: {done.stderr.decode('utf-8', 'replace')[-2000:]}")
    return done.stdout
