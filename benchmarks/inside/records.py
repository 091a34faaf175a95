"""Time submitting and listing with records in several places: `records.py COUNT ROUNDS`; the places come on stdin.

Each place is a set of variables, as JSON. Prints the seconds of each round, for each place, as JSON. Runs on the
interpreter of the environment that is measured.
"""

import json
import os
import sys
import time
from collections.abc import Mapping

import anyio

from pyexec.app.principal import local_principal
from pyexec.app.services import Services, open_services
from pyexec.domain.executions import ExecutionRequest
from pyexec.settings import load_settings

WARM_UPS = 8
PRINCIPAL = local_principal()


async def submit(services: Services) -> float:
    request = ExecutionRequest(script_content="pass", use_uv=False)
    started = time.perf_counter()
    execution = await services.executions.submit(PRINCIPAL, request)
    seconds = time.perf_counter() - started
    await services.executions.wait_for(execution, None)
    return seconds


async def listing(services: Services, count: int) -> float:
    started = time.perf_counter()
    found, _total = await services.executions.newest(PRINCIPAL, states=None, limit=count)
    seconds = time.perf_counter() - started
    if len(found) != count:
        raise SystemExit(f"asked for {count} records, got {len(found)}")
    return seconds


async def main(count: int, rounds: int, places: list[Mapping[str, str]]) -> None:
    opened = [open_services(load_settings({**os.environ, **place})) for place in places]
    taken: dict[str, list[list[float]]] = {name: [[] for _place in places] for name in ("submit", "list")}
    for number in range(rounds + WARM_UPS):
        turns = list(enumerate(opened))
        for at, services in turns if number % 2 else reversed(turns):
            taken["submit"][at].append(await submit(services))
            taken["list"][at].append(await listing(services, count))
    for services in opened:
        services.close()
    print(json.dumps({name: [samples[WARM_UPS:] for samples in each] for name, each in taken.items()}))


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]), int(sys.argv[2]), json.load(sys.stdin))
