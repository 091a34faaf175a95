"""What a benchmark is asked for, and the one execution that it becomes."""

import math
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyexec.benchmarks import plot
from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.executions import ExecutionRequest, Harness

KIND = "benchmark"
SAMPLES = "samples.jsonl"
MOST_RUNS = 1000
MOST_VARIANTS = 8
INTERVALS = (0.001, 60.0)
NAME_LENGTH = 60
RUNS_TO_COMPARE = 15
_RUNNER = str(Path(__file__).parent / "runner" / "__main__.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What is different in one program from the first; None leaves it as it is there."""

    name: str
    script_path: str | None = None
    script_content: str | None = None
    args: tuple[str, ...] | None = None
    python_version: str | None = None
    dependencies: tuple[str, ...] | None = field(default=None, repr=False)
    env_vars: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRequest:
    """What to measure. Its `timeout_seconds` counts for each run.

    Attributes:
        runs: How many runs of each program count; None: one, or fifteen where there is something to compare.
        warmup: How many go before and do not count; None: one where there is more than one that counts.
        interval: Seconds between two looks at the memory.
        compare: The other variants.
        plot: Whether to draw one.
        name: What the first one is called.
    """

    program: ExecutionRequest
    runs: int | None = None
    warmup: int | None = None
    interval: float = 0.05
    compare: tuple[Variant, ...] = ()
    plot: bool = False
    name: str | None = None


def execution_request(request: BenchmarkRequest, timeout_ceiling: float) -> ExecutionRequest:
    """Return the one execution whose program runs all the others.

    Raises:
        InvalidArgumentError: A value is not allowed.
    """
    _check(request, timeout_ceiling)
    runs = request.runs or (RUNS_TO_COMPARE if request.compare else 1)
    warmup = (1 if runs > 1 else 0) if request.warmup is None else request.warmup
    names = _names(request)
    program, timeout = request.program, request.program.timeout_seconds
    companions = [_companion(program, variant) for variant in request.compare]
    if request.plot:
        companions.append(plot.program(program.directory))
    # The only run there is may just as well be ended by whoever ends all others.
    alone = runs + warmup == 1 and not request.compare
    instructions = {
        "head": {"names": names, "runs": runs, "warmup": warmup, "interval": request.interval, "plot": request.plot},
        "samples": SAMPLES,
        "rounds": _rounds(len(names), runs + warmup),
        "warmup": warmup,
        "interval": request.interval,
        "timeout": 0 if alone else timeout,
        "plot": len(companions) if request.plot else None,
    }
    harness = Harness(
        before=(sys.executable, "-I", "-S", _RUNNER), instructions=instructions, companions=tuple(companions)
    )
    return replace(program, kind=KIND, harness=harness, timeout_seconds=timeout if alone else 0)


def _check(request: BenchmarkRequest, timeout_ceiling: float) -> None:
    timeout = request.program.timeout_seconds
    checks: tuple[tuple[str, float | None, float, float], ...] = (
        ("runs", request.runs, 1, MOST_RUNS),
        ("warmup", request.warmup, 0, MOST_RUNS),
        ("sample_interval", request.interval, *INTERVALS),
        ("timeout_seconds", timeout, 0, timeout_ceiling),
    )
    for name, value, least, most in checks:
        if value is not None and not (math.isfinite(value) and least <= value <= most):
            raise InvalidArgumentError(f"{name} is {value:g}; it must be between {least:g} and {most:g}.")
    if len(request.compare) > MOST_VARIANTS:
        raise InvalidArgumentError(f"compare has {len(request.compare)} variants; at most {MOST_VARIANTS} are allowed.")
    for variant in request.compare:
        if variant.script_path is not None and variant.script_content is not None:
            raise InvalidArgumentError(f"The variant {variant.name!r} has both script_path and script_content.")


def _names(request: BenchmarkRequest) -> list[str]:
    names = [request.name or _default_name(request.program), *(variant.name for variant in request.compare)]
    for place, name in enumerate(names):
        if not name.strip() or len(name) > NAME_LENGTH or not name.isprintable():
            raise InvalidArgumentError(
                f"A variant is called {name[:NAME_LENGTH]!r}; a name has 1 to {NAME_LENGTH} printable characters."
            )
        if name in names[:place]:
            raise InvalidArgumentError(f"Two variants are called {name!r}.", hint="Give each a name of its own.")
    return names


def _default_name(program: ExecutionRequest) -> str:
    if program.script_path is None:
        return "first"
    name = Path(program.script_path).name
    return name if name.isprintable() and 0 < len(name) <= NAME_LENGTH else "first"


def _companion(program: ExecutionRequest, variant: Variant) -> ExecutionRequest:
    sourced = variant.script_path is not None or variant.script_content is not None
    return replace(
        program,
        script_path=variant.script_path if sourced else program.script_path,
        script_content=variant.script_content if sourced else program.script_content,
        args=program.args if variant.args is None else variant.args,
        python_version=program.python_version if variant.python_version is None else variant.python_version,
        dependencies=program.dependencies if variant.dependencies is None else variant.dependencies,
        env_vars={**program.env_vars, **variant.env_vars},
        request_id=None,
        label=None,
        timeout_seconds=0,
    )


def _rounds(programs: int, rounds: int) -> list[Sequence[int]]:
    """Return the order of each round: all programs once, shuffled, so that none always comes after the same one."""
    return [random.sample(range(programs), programs) for _round in range(rounds)]
