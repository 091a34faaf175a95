"""The server over HTTP: what it adds to a call, how many clients it bears, whether it grows, who can follow one job."""

import http.client
import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import Bench
from figures import Figure, Target, in_milliseconds, interleave
from installation import BenchmarkError

VERSION = "2026-07-28"
CLIENTS = 64
BUILD_SECONDS = 300.0
FLAT = 1.1
NOOP = "format_code"
"""See `programs/noop_service.py`."""

_META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
FOLLOWED = "import time\nfor n in range(20):\n    print('line', n, flush=True); time.sleep(0.1)\n"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server listens, the token it needs, and its process."""

    address: str
    token: str | None
    pid: int


class Caller:
    """One client that keeps its connection."""

    def __init__(self, where: "Place") -> None:
        self._connection = http.client.HTTPConnection(where.address, timeout=300)
        self._own = {"Authorization": f"Bearer {where.token}"} if where.token else {}

    def call(self, tool: str = NOOP, /, **arguments: object) -> dict[str, object]:
        """Call a tool; return its structured result."""
        params = {"name": tool, "arguments": arguments, "_meta": _META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        told = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": VERSION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
            **self._own,
        }
        self._connection.request("POST", "/mcp", body, told)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise BenchmarkError(f"a call was answered with {answer.status}: {text[:200]!r}")
        if (answer.getheader("content-type") or "").startswith("text/event-stream"):  # A call that takes long.
            text = [line for line in text.splitlines() if line.startswith(b"data: {")][-1].removeprefix(b"data: ")
        found: dict[str, object] = json.loads(text)["result"]["structuredContent"]
        return found

    def timed(self) -> float:
        """Return how long a call takes that does nothing, in seconds."""
        begun = time.perf_counter()
        self.call(number=1)
        return time.perf_counter() - begun

    def follow(self, job_id: str) -> str:
        """Read what a job prints, pushed, to its end."""
        self._connection.request("GET", f"/executions/{job_id}/events")
        return self._connection.getresponse().read().decode()


def measure(bench: Bench) -> list[Figure]:
    """Measure all of it."""
    with _program(bench, "ours") as ours, _program(bench, "plain") as plain, _program(bench, "bare") as bare:
        figures = [*_added(bench, ours, plain, bare), _many(ours, bench.rounds(full=50, quick=10))]
        if not bench.quick:
            figures.append(_flat(ours))
    with _program(bench, "cells", PYEXEC_SANDBOX_PACKAGES="ipython") as cells:
        figures.append(_cell(bench, cells))
    with _server(bench) as where:
        figures.append(_followed(where, bench.rounds(full=500, quick=50)))
    return figures


def _added(bench: Bench, *places: Place) -> list[Figure]:
    callers = [Caller(where) for where in places]
    for caller in callers:
        for _call in range(50):
            caller.timed()
    ours, plain, bare = interleave(bench.rounds(full=1000, quick=200), *(caller.timed for caller in callers))
    return [
        in_milliseconds(
            "a tool that does nothing, with a token | FastMCP's own app, without", ours, plain, at_most=1.25
        ),
        in_milliseconds("the same | the app of a server with nothing but that tool", ours, bare),
    ]


def _cell(bench: Bench, where: Place) -> Figure:
    caller, numbers = Caller(where), iter(range(1_000_000))

    def cell() -> float:
        begun = time.perf_counter()
        caller.call("execute_python", code=f"1 + {next(numbers)}", session_id="one", wait_seconds=BUILD_SECONDS)
        return time.perf_counter() - begun

    for _call in range(20):
        cell()
        caller.timed()
    cells, nothings = interleave(bench.rounds(full=400, quick=60), cell, caller.timed)
    figure = in_milliseconds("1 + 1 in a live session, with a token | a tool that does nothing", cells, nothings)
    allowed = statistics.median(nothings) * 1000 + 3.0
    return replace(figure, target=Target(f"<= that + 3 ms = {allowed:.1f} ms", figure.value <= allowed))


def _many(where: Place, calls: int) -> Figure:
    errors: list[str] = []

    def work() -> None:
        try:
            caller = Caller(where)
            strange = sum(caller.call(number=number) != {"result": number} for number in range(calls))
        except (BenchmarkError, OSError, http.client.HTTPException) as error:
            errors.append(f"{error}")
        else:
            errors.extend(["another's result"] * strange)

    begun = time.perf_counter()
    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = CLIENTS * calls / (time.perf_counter() - begun)
    text = "no error" if not errors else f"no error ({len(errors)}: {errors[0]})"
    return Figure(
        what=f"{CLIENTS} clients x {calls} calls", value=rate, unit="calls/s", target=Target(text, not errors)
    )


def _flat(where: Place) -> Figure:
    caller = Caller(where)
    for number in range(2000):
        caller.call(number=number)
    before = _resident(where.pid)
    for number in range(10_000):
        caller.call(number=number)
    after = _resident(where.pid)
    target = Target(f"at most {FLAT} x", after <= before * FLAT)
    return Figure(
        what="memory after 10,000 calls more | before", value=after, unit="MB", baseline=before, target=target
    )


def _followed(where: Place, followers: int) -> Figure:
    starter = Caller(where)
    job = starter.call("run_script_in_dir", directory="/tmp", script_content=FOLLOWED, use_uv=False, async_mode=True)
    read: list[str] = []
    late: list[float] = []

    def follow() -> None:
        text = Caller(where).follow(str(job["job_id"]))
        late.append(time.perf_counter())
        read.append(text)

    threads = [threading.Thread(target=follow) for _ in range(followers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = sum("line 19" in text and "event: end" in text and text.count("line 7") == 1 for text in read)
    spread = 1000 * (max(late) - min(late))
    return Figure(
        what=f"{followers} follow one job: from the first who has seen its end to the last",
        value=spread,
        unit="ms",
        target=Target("all see all of it", whole == followers),
    )


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def _program(bench: Bench, how: str, **settings: str) -> Generator[Place]:
    home = bench.new_folder(f"service-{how}")
    environ = bench.installation.environ(PYEXEC_HOME=str(home), **settings)
    python = Path(bench.installation.pyexec).parent / "python"
    argv = [str(python), str(bench.programs / "noop_service.py"), how]
    with (home / "stderr.log").open("ab") as errors:
        server = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert server.stdout is not None
        address, token = server.stdout.readline().split()
        yield Place(address, None if token == "-" else token, server.pid)
    finally:
        server.terminate()
        server.communicate()


@contextmanager
def _server(bench: Bench) -> Generator[Place]:
    home = bench.new_folder("service")
    environ = bench.installation.environ(PYEXEC_HOME=str(home), PYEXEC_HTTP_RATE="0")
    argv = [str(bench.installation.pyexec), "serve", "--http", "127.0.0.1:0", "--toolsets", "core,jobs"]
    server = subprocess.Popen(argv, env=environ, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        for line in server.stderr:
            if line.startswith("pyexec serves MCP at "):
                address = line.strip().removeprefix("pyexec serves MCP at http://").removesuffix("/mcp")
                yield Place(address, None, server.pid)
                break
        else:
            raise BenchmarkError("the server did not begin to serve")
    finally:
        server.terminate()
        server.communicate()
