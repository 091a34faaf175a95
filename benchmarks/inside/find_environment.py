"""Time how long it takes to find an environment that is ready; print the samples as JSON. Runs inside the product."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from pyexec.environments.asking import Asked
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.environments.plan import Planner
from pyexec.environments.service import environment_places
from pyexec.processes.probe import python_version
from pyexec.settings import load_settings
from pyexec.storage.state_folder import StateFolder

package, rounds = sys.argv[1], int(sys.argv[2])


def main() -> None:
    settings = load_settings()
    folder = StateFolder(settings.home)
    store, names = environment_places(folder.environments)
    planner = Planner(
        finder=InterpreterFinder(settings.environ, folder.interpreters_cache, python_version, own=settings.interpreter),
        store=store,
        names=names,
        environ=settings.environ,
        own_prefix=settings.prefix,
        own_version=settings.python_version,
        fresh_seconds=settings.environment_limits.fresh,
    )
    samples: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        # The other benchmark names its interpreter by its path too.
        asked = Asked(
            python_version=sys.executable,
            script=Path("hello.py"),
            header_source=b"",
            dependencies=(package,),
            directory=Path.cwd(),
            project=False,
            owner="benchmark",
            environ=dict(os.environ),
            folder=Path(scratch) / "execution",
            holder_lock=Path(scratch) / "lock",
        )
        for _round in range(rounds + 10):
            started = time.perf_counter()
            plan = planner.plan(asked)
            samples.append(time.perf_counter() - started)
            if plan.environment is None:
                raise SystemExit("it was not found")
    print(json.dumps(samples[10:]))


main()
