"""A guest alone: what of a cell is its own, without the keeper, the server and the client around it."""

import json
import subprocess

from bench import HERE, Bench
from figures import Figure, in_milliseconds

FIND = "import pyexec_guest; print(pyexec_guest.__path__[0])"
STEP_SECONDS = 300.0


def measure(bench: Bench) -> list[Figure]:
    """Measure a cell that does next to nothing, against IPython with nothing around it."""
    environment = bench.new_folder("environment")
    python = str(environment / "bin" / "python")
    uv, ours = bench.installation.uv, bench.installation.python
    _run(bench, [uv, "venv", "--quiet", "--no-project", "--python", ours, str(environment)])
    _run(bench, [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, "ipython"])
    package = _run(bench, [ours, "-c", FIND]).strip()
    rounds = bench.rounds(full=600, quick=60)
    samples = json.loads(_run(bench, [python, str(HERE / "inside" / "guest.py"), package, str(rounds)]))
    what = "1 + 1 in a guest, from its request to its last word | IPython's run_cell with nothing around it"
    return [in_milliseconds(what, samples["cells"], samples["ipython"])]


def _run(bench: Bench, command: list[str]) -> str:
    environ = bench.installation.environ()
    done = subprocess.run(command, check=True, capture_output=True, timeout=STEP_SECONDS, env=environ, text=True)
    return done.stdout
