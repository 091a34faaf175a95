"""What the rooms cost that a start needs: processor time of an import, above that of a bare interpreter."""

from bench import Bench
from figures import Figure, in_milliseconds, interleave
from processes import run

FASTMCP = "from fastmcp import FastMCP"
# By the road of a start; each holds what the ones before it load.
IMPORTS = {
    "the command line": "import pyexec.cli.main",
    "settings and logging": "import pyexec.cli.main, pyexec.cli.serve",
    "all that initialize needs": "import pyexec.cli.main, pyexec.cli.serve, pyexec.app.server",
    "the services, loaded afterwards": "import pyexec.app.services",
}


def measure(bench: Bench) -> list[Figure]:
    environ = bench.installation.environ()

    def cost(code: str) -> float:
        return run([bench.installation.python, "-c", code], environ).cpu

    statements = ["pass", FASTMCP, *IMPORTS.values()]
    nothing, fastmcp, *ours = interleave(
        bench.rounds(full=15, quick=2), *(lambda code=code: cost(code) for code in statements)
    )
    return [
        in_milliseconds(f"import of {name}: CPU, against fastmcp", _above(samples, nothing), _above(fastmcp, nothing))
        for name, samples in zip(IMPORTS, ours, strict=True)
    ]


def _above(samples: list[float], nothing: list[float]) -> list[float]:
    return [sample - floor for sample, floor in zip(samples, nothing, strict=True)]
