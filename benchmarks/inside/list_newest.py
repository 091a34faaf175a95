"""Time the service's listing: `list_newest.py COUNT ROUNDS`; prints the seconds of each round, as JSON.

Runs on the interpreter of the environment that is measured; PYEXEC_HOME is the state folder.
"""

import json
import sys
import time

import anyio

from pyexec.app.principal import local_principal
from pyexec.app.services import open_services
from pyexec.settings import load_settings

WARM_UPS = 3


async def main(count: int, rounds: int) -> None:
    services = open_services(load_settings())
    principal = local_principal()
    samples: list[float] = []
    for _round in range(rounds + WARM_UPS):
        started = time.perf_counter()
        found, _total = await services.executions.newest(principal, states=None, limit=count)
        samples.append(time.perf_counter() - started)
        if len(found) != count:
            raise SystemExit(f"asked for {count} records, got {len(found)}")
    print(json.dumps(samples[WARM_UPS:]))


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]), int(sys.argv[2]))
