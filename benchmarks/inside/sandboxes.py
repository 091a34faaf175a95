"""Measure sandboxes, from a process of the product's own: `sandboxes.py <python> <packages> <rounds>`; prints JSON.

The samples of each kind are in seconds, those of memory in bytes, those of throughput in sandboxes per second.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyexec.domain.limits import MEGABYTE, SandboxLimits
from pyexec.domain.sandboxes import PRELOADED, WAIVABLE
from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.contents import USERS, Inside, plan_for
from pyexec.walls.bubblewrap.limits import groups_for
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec.walls.bubblewrap.python import look_at
from pyexec.walls.bubblewrap.sandboxes import Sandboxes
from pyexec_guest import protocol

GUEST = "pyexec_guest.inner:run"
CODES = {"one": "1 + 1", "imports": "import pandas, matplotlib.pyplot; 1 + 1"}
READY = 2
SETTLE_SECONDS = 0.3
CALLERS = 4
"""How many take sandboxes, use them once and end them at the same time."""


def main(python: Path, packages: Path, rounds: int) -> dict[str, list[float]]:
    environ = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    inside = Inside(
        python=look_at(python, environ),
        packages=packages,
        guest=GUEST,
        preloaded=PRELOADED,
    )
    users = USERS if os.geteuid() == 0 else None
    plan = plan_for(inside, find_bubblewrap(environ.get("PATH")), users)
    groups = groups_for(f"benchmark-{os.getpid()}", 8192 * MEGABYTE, WAIVABLE)
    # Whole processors: what is measured is the making, and a sandbox that has used up its share waits for the next.
    limits = SandboxLimits(cpu=2.0)
    wall = Sandboxes(plan, groups, environ, limits=limits, ready=0)
    pooled = Sandboxes(plan, groups, environ, limits=limits, ready=READY)
    try:
        wall.warm()
        pooled.warm()
        found = _measure(wall, pooled, [str(python), "-c", f"import {', '.join(PRELOADED)}"], rounds)
        return found | {"throughput": [_throughput(pooled, rounds) for _ in range(3)]}
    finally:
        pooled.close()
        wall.close()
        groups.remove()


def _measure(wall: Sandboxes, pooled: Sandboxes, plain: list[str], rounds: int) -> dict[str, list[float]]:
    names = ("forked", "hello", "ready", "imports", "killed", "memory", "plain")
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        found["plain"].append(_timed(lambda: subprocess.run(plain, check=True)))
        time.sleep(SETTLE_SECONDS)  # Until those that are kept ready have been made.
        boxes = [
            _first_result(wall, CODES["one"], found["forked"], found["hello"]),
            _first_result(pooled, CODES["one"], found["ready"], []),
            _first_result(pooled, CODES["imports"], found["imports"], []),
        ]
        usage = boxes[0].usage()
        found["memory"].append(usage.memory if usage is not None else 0)
        for box in boxes:
            found["killed"].append(_timed(box.kill))
            box.close()
    return found


def _first_result(wall: Sandboxes, code: str, samples: list[float], hellos: list[float]) -> Box:
    started = time.perf_counter()
    box = wall.sandbox()
    connection = box.sandbox.socket
    frames: list[dict[str, Any]] = []
    decoder = protocol.Decoder(protocol.GUEST_FRAME)
    while not frames:
        frames += decoder.feed(connection.recv(65536))
    hellos.append(time.perf_counter() - started)
    connection.sendall(protocol.encode({"op": "run", "turn": "a" * 32, "code": code}))
    while frames[-1]["t"] != "done":
        frames += decoder.feed(connection.recv(65536))
    samples.append(time.perf_counter() - started)
    assert frames[-1]["value"] in ("1", "2"), frames
    return box


def _throughput(wall: Sandboxes, each: int) -> float:
    """Return how many sandboxes per second are taken, answer, and are gone."""

    def use(_number: int) -> None:
        _first_result(wall, CODES["one"], [], []).close()

    with ThreadPoolExecutor(CALLERS) as callers:
        seconds = _timed(lambda: list(callers.map(use, range(CALLERS * each))))
    return CALLERS * each / seconds


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))
