"""How soon the command line says what it can do."""

from bench import Bench
from figures import Figure, in_milliseconds, interleave
from processes import Cost, run


def measure(bench: Bench) -> list[Figure]:
    environ = bench.installation.environ()
    costs: dict[str, list[Cost]] = {"help": [], "pass": []}

    def note(name: str, cost: Cost) -> float:
        costs[name].append(cost)
        return cost.wall

    helped, passed = interleave(
        bench.rounds(full=41, quick=11),
        lambda: note("help", run([bench.installation.pyexec, "--help"], environ)),
        lambda: note("pass", run([bench.installation.python, "-c", "pass"], environ)),
    )
    cpu = {name: [cost.cpu for cost in taken] for name, taken in costs.items()}
    return [
        in_milliseconds("pyexec --help: wall, against python -c pass", helped, passed, at_most=6),
        in_milliseconds("pyexec --help: CPU, against python -c pass", cpu["help"], cpu["pass"]),
    ]
