"""Measure the built product against what a person would use instead: `run.py [--quick] [--json FILE] [NAMES]`.

Builds the wheel, installs it into a fresh environment with its bytecode compiled, and measures from there. Every
figure and what it is compared with are taken in turn, in one run; what is shown are medians. The exit status is 1
when a target is missed, except with --quick, which is for seeing that everything works.
"""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import burst
import environments
import exchange
import guest
import hello
import help as help_text
import imports
import initialize
import listing
import measuring
import neighbours
import printing
import records
import sandboxes
import service
import sessions
import tokens
from bench import HERE, Bench
from figures import Figure, table
from installation import BenchmarkError, Installation, install

PROGRAMS = HERE / "programs"

BENCHMARKS: dict[str, Callable[[Bench], list[Figure]]] = {
    "initialize": initialize.measure,
    "help": help_text.measure,
    "hello": hello.measure,
    "environments": environments.measure,
    "printing": printing.measure,
    "measuring": measuring.measure,
    "listing": listing.measure,
    "records": records.measure,
    "burst": burst.measure,
    "guest": guest.measure,
    "sandboxes": sandboxes.measure,
    "sessions": sessions.measure,
    "tokens": tokens.measure,
    "imports": imports.measure,
    "exchange": exchange.measure,
    "service": service.measure,
    "neighbours": neighbours.measure,
}


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="pyexec-benchmarks-") as folder:
        try:
            figures = _measure(options, Path(folder))
        except BenchmarkError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    print(table([figure for found in figures.values() for figure in found]))
    if load > cores / 2:
        _say(f"The machine was busy at the start (load {load:.1f} on {cores} cores): these figures are rough.")
    if options.json is not None:
        options.json.write_text(_as_json(figures, quick=options.quick, load=load), encoding="utf-8")
    missed = sum(not figure.target.met for found in figures.values() for figure in found if figure.target is not None)
    if missed:
        print(f"\n{missed} target{'s' if missed > 1 else ''} missed.")
    return 1 if missed and not options.quick else 0


def _parser() -> argparse.ArgumentParser:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", type=_name, help=f"default: all of {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="few samples; a missed target is no failure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument(
        "--environment", type=Path, metavar="DIR", help="measure this environment in place of one made of a wheel"
    )
    return parser


def _name(text: str) -> str:
    if text not in BENCHMARKS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(BENCHMARKS)}")
    return text


def _measure(options: argparse.Namespace, folder: Path) -> dict[str, list[Figure]]:
    if options.environment is None:
        _say("building and installing the wheel")
        installation = install(folder)
    else:
        installation = Installation(options.environment.absolute())
    programs = folder / "programs"
    shutil.copytree(PROGRAMS, programs)
    bench = Bench(installation, folder, programs, options.quick)
    figures: dict[str, list[Figure]] = {}
    for name in options.names or BENCHMARKS:
        started = time.monotonic()
        figures[name] = BENCHMARKS[name](bench)
        _say(f"{name}: {time.monotonic() - started:.0f} s")
    return figures


def _as_json(figures: dict[str, list[Figure]], *, quick: bool, load: float) -> str:
    report = {
        "quick": quick,
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
        "load": load,
        "figures": {name: [figure.as_json() for figure in found] for name, found in figures.items()},
    }
    return json.dumps(report, indent=2) + "\n"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
