"""Sessions: a cell in a live interpreter, many interpreters at once, and what is left when they have come and gone."""

import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bench import Bench
from figures import Figure, Target, in_milliseconds, interleave
from mcp_client import McpClient

PACKAGES = "ipython numpy pandas matplotlib"
BUILD_SECONDS = 300.0
WARM_UPS = 20
BUSY = 16
BUSY_SECONDS = 600
WORK = """
import pandas as pd, numpy as np
df = pd.DataFrame({'a': np.arange(1000) % 7, 'b': 1.0})
df.groupby('a').b.sum()[0]
"""
ENDLESS = "n = 0\nwhile True:\n    n += 1"
SETTLE_SECONDS = 2.0
GROUPS = Path("/sys/fs/cgroup")


def measure(bench: Bench) -> list[Figure]:
    """Measure all of it."""
    home = bench.new_folder("home")
    with _server(bench, home, PYEXEC_SANDBOX_PACKAGES=PACKAGES) as client:
        figures = [_round_trip(bench, client)]
        figures += _come_and_go(client, home, bench.rounds(full=10_000, quick=30))
    many = bench.rounds(full=300, quick=20)
    crowded = {
        "PYEXEC_SANDBOX_PACKAGES": PACKAGES,
        "PYEXEC_SANDBOX_MEMORY": "128",
        # What all have been promised comes to more than there is, as an operator may decide.
        "PYEXEC_SANDBOXES_MEMORY": str(140 * many + 2048),
        "PYEXEC_SESSIONS": str(2 * many),
        "PYEXEC_CONCURRENT": str(4 * BUSY),
    }
    with _server(bench, home, **crowded) as client:
        return figures + _many(client, many)


def _server(bench: Bench, home: Path, **settings: str) -> McpClient:
    environ = bench.installation.environ(PYEXEC_HOME=str(home), PYEXEC_TOOLSETS="execute,sessions", **settings)
    python = Path(bench.installation.pyexec).parent / "python"
    client = McpClient([str(python), str(bench.programs / "noop_stdio.py")], environ, home / "stderr.log")
    client.initialize()
    client.initialized()
    return client


def _round_trip(bench: Bench, client: McpClient) -> Figure:
    numbers = iter(range(1_000_000))

    def cell() -> float:
        code = f"1 + {next(numbers)}"
        return _timed(lambda: client.call("execute_python", code=code, session_id="one", wait_seconds=BUILD_SECONDS))

    def nothing() -> float:
        return _timed(lambda: client.call("noop", number=1))

    for _call in range(WARM_UPS):
        cell()
        nothing()
    cells, nothings = interleave(bench.rounds(full=400, quick=60), cell, nothing)
    client.call("close_session", session_id="one")
    figure = in_milliseconds(
        "1 + 1 in a live session, at the tool | a tool of the same server that does nothing", cells, nothings
    )
    allowed = 1.5 * statistics.median(nothings) * 1000 + 2.0
    return replace(figure, target=Target(f"<= 1.5 x + 2 ms = {allowed:.1f} ms", figure.value <= allowed))


def _many(client: McpClient, many: int) -> list[Figure]:
    """Use many sessions, keep some of them busy, and see how long the next cell of one that is idle takes."""
    for number in range(many):
        client.call("execute_python", code=WORK, session_id=f"n{number}", wait_seconds=BUILD_SECONDS)
    memory = _own_memory(client)
    busy = [
        client.start("execute_python", code=ENDLESS, session_id=f"n{number}", timeout_seconds=BUSY_SECONDS)
        for number in range(BUSY)
    ]
    samples = [
        _timed(lambda name=f"n{number}": client.call("execute_python", code="df.a[3]", session_id=name))
        for number in range(BUSY, many)
    ]
    for number in range(BUSY):
        client.call("interrupt_session", session_id=f"n{number}")
    for request in busy:
        client.receive(request)
    for number in range(many):
        client.call("close_session", session_id=f"n{number}")
    samples.sort()
    p95 = 1000 * samples[int(len(samples) * 0.95)]
    what = f"next cell of an idle one of {many} sessions with {BUSY} busy: 95 of 100 within"
    return [
        Figure(what=what, value=p95, unit="ms", target=Target("<= 30 ms", p95 <= 30), samples=len(samples)),
        Figure(what=f"memory of one of {many} sessions that have used pandas", value=memory, unit="MB"),
    ]


def _own_memory(client: McpClient) -> float:
    told = client.call("list_sessions")["sessions"]
    return statistics.median(one["memory_mb"] for one in told)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _come_and_go(client: McpClient, home: Path, rounds: int) -> list[Figure]:
    """Make, use and close sessions, one after the other, and count what is there before and after."""

    def once() -> None:
        client.call("execute_python", code="1 + 1", session_id="short", wait_seconds=BUILD_SECONDS)
        client.call("close_session", session_id="short")

    for _round in range(WARM_UPS):
        once()
    before = _there_is(client, home)
    begun = time.perf_counter()
    for _round in range(rounds):
        once()
    rate = rounds / (time.perf_counter() - begun)
    after = _there_is(client, home)
    grown = {name: count - before[name] for name, count in after.items() if count > before[name] + _SLACK[name]}
    text = "nothing is left" if not grown else f"nothing is left ({json.dumps(grown)})"
    what = f"{rounds} sessions made, used and closed"
    return [Figure(what=what, value=rate, unit="calls/s", target=Target(text, not grown), samples=rounds)]


_SLACK = {"processes": 2, "mounts": 1, "groups": 6, "folders": 0, "descriptors": 16, "memory": 24}
"""How much more there may be at any moment: what is being made ready, and megabytes that an interpreter keeps."""


def _there_is(client: McpClient, home: Path) -> dict[str, int]:
    time.sleep(SETTLE_SECONDS)  # What is going has gone, and what shall be ready is.
    pids = {client.pid, *_with_children(_keeper(home))}
    return {
        "processes": len(pids),
        "mounts": _mounts(_keeper(home)),
        "groups": sum(f"pyexec-{_key(home)}" in folder for folder, _folders, _files in os.walk(GROUPS)),
        "folders": sum(1 for _ in (home / "sessions").glob("*/*")),
        "descriptors": sum(_count_descriptors(pid) for pid in pids),
        "memory": sum(_anonymous_megabytes(pid) for pid in (client.pid, _keeper(home))),
    }


def _key(home: Path) -> str:
    """Return what the control groups of a home's keeper are called."""
    (lock,) = (home / "sandboxes").glob("*/lock")
    return lock.parent.name


def _keeper(home: Path) -> int:
    (lock,) = (home / "sandboxes").glob("*/lock")
    return int(lock.read_text())


def _with_children(root: int) -> set[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, new = {root}, [root]
    while new:
        new = parents.get(new.pop(), []) + new
        found.update(new)
    return found


def _mounts(pid: int) -> int:
    return len(Path(f"/proc/{pid}/mounts").read_text().splitlines())


def _count_descriptors(pid: int) -> int:
    with suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def _anonymous_megabytes(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in text.splitlines() if line.startswith("RssAnon"))
