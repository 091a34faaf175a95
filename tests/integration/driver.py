"""A server process for tests: reads commands as JSON lines, answers with JSON lines. See `engine.Server`.

{"do": "submit", "code": …, "times": n, "at_once": n, …request}   → [id or error code, …]
{"do": "wait", "ids": […], "seconds": s}                          → [state, …]
{"do": "states"}                                                  → [[id, state], …], newest first
{"do": "hang", "where": "hand-over" | "orders" | "record"}        → "ready"; the next submit says "hanging", and hangs
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import anyio
from anyio.to_thread import run_sync

from pyexec.app.principal import local_principal
from pyexec.app.services import Services, open_services
from pyexec.domain.errors import PyexecError
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.sandbox import handover
from pyexec.sandbox.keepers import KeeperConnection
from pyexec.sandbox.ports import Launch
from pyexec.settings import load_settings
from pyexec.storage.executions import ExecutionStore
from pyexec.walls.host.wall import HostWall


def say(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def hang() -> NoReturn:
    say("hanging")
    while True:
        time.sleep(600)


def hang_before_the_hand_over(self: HostWall, launch: Launch, lock_fd: int) -> KeeperConnection:
    hang()


def hang_before_the_orders(launch: Launch) -> dict[str, object]:
    hang()


def hang_before_the_record(self: ExecutionStore, execution: Execution) -> None:
    hang()


class Driver:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._executions = services.executions
        self._principal = local_principal()

    async def submit(self, code: str, times: int = 1, at_once: int = 4, **request: Any) -> list[str]:
        ids: list[str] = []
        turns = anyio.CapacityLimiter(at_once)

        async def one() -> None:
            async with turns:
                try:
                    wanted = ExecutionRequest(script_content=code, use_uv=False, **request)
                    ids.append((await self._executions.submit(self._principal, wanted)).id)
                except PyexecError as error:
                    ids.append(error.code)

        async with anyio.create_task_group() as tasks:
            for _ in range(times):
                tasks.start_soon(one)
        return ids

    async def wait(self, ids: list[str], seconds: float = 60.0) -> list[str]:
        with anyio.move_on_after(seconds):
            return [(await self._executions.wait(self._principal, each, None)).state for each in ids]
        return [(await self._executions.get(self._principal, each)).state for each in ids]

    async def states(self) -> list[list[str]]:
        found, _total = await self._executions.newest(self._principal, states=None, limit=10_000)
        return [[execution.id, execution.state] for execution in found]

    async def hang(self, where: str) -> str:
        if where == "hand-over":
            HostWall.launch = hang_before_the_hand_over
        elif where == "record":
            ExecutionStore.add = hang_before_the_record
        else:
            handover._orders = hang_before_the_orders
        return "ready"


async def main() -> None:
    services = await run_sync(open_services, load_settings(directory=Path(sys.argv[1])))
    driver = Driver(services)
    while line := await run_sync(sys.stdin.readline):
        command = json.loads(line)
        say(await getattr(driver, command.pop("do"))(**command))
    services.close()


if __name__ == "__main__":
    anyio.run(main)
