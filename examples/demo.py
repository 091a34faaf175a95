"""A tour of pyexec in a minute: the real server over stdio, driven by a real MCP client.

    make demo

It runs a small data analysis that needs two packages, follows a job while it runs, kills the server in the middle
of it and reads on with the next one, and looks at a program that fails. It exits with 1 when anything is not as it
should be. Nothing stays behind but the picture, in `demo-output/`.
"""

import argparse
import os
import struct
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import anyio
import psutil
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import FastMCPError
from mcp.shared.exceptions import MCPError

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100
PACKAGES = ["numpy>=2", "matplotlib>=3.9"]
ANALYSIS_SECONDS = 600.0

ANALYSIS = """
import sys
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

# Ten years of daily temperatures: a yearly wave, a slow trend, and weather.
rng = np.random.default_rng(2024)
days = np.arange(3653)
years = days / 365.25
truth = 0.31  # degrees a year, for the analysis to find again
weather = np.convolve(rng.normal(0, 2.4, days.size + 9), np.ones(10) / 10**0.5, "valid")
degrees = 9.5 - 8.2 * np.cos(2 * np.pi * (years - 0.05)) + truth * years + weather

wave = [np.ones_like(years), years, np.cos(2 * np.pi * years), np.sin(2 * np.pi * years)]
design = np.stack(wave, axis=1)
fit = np.linalg.lstsq(design, degrees, rcond=None)[0]
print(f"days              {days.size:8}")
print(f"mean              {degrees.mean():8.2f} °C")
print(f"coldest, warmest  {degrees.min():8.2f} °C, {degrees.max():.2f} °C")

# How sure is the trend? Draw months again and again (weather comes in spells), as often as six seconds allow.
blocks = np.array_split(days, 120)
slopes = []
began = time.monotonic()
while len(slopes) < 400 or time.monotonic() - began < 6:
    drawn = np.concatenate([blocks[i] for i in rng.integers(0, len(blocks), len(blocks))])
    slopes.append(np.linalg.lstsq(design[drawn], degrees[drawn], rcond=None)[0][1])
low, high = np.percentile(slopes, [2.5, 97.5])
print(f"trend             {fit[1]:8.2f} °C a year, 95 % between {low:.2f} and {high:.2f}")

figure, (above, below) = plt.subplots(2, 1, figsize=(9, 6), layout="constrained")
above.plot(years, degrees, lw=0.4, color="0.6", label="measured")
above.plot(years, design @ fit, lw=1.2, color="tab:blue", label="fitted")
above.plot(years, fit[0] + fit[1] * years, lw=1.5, color="tab:red", label="trend")
above.set(xlabel="year", ylabel="°C", title="Ten years of daily temperatures")
above.legend(loc="upper left", ncols=3)
below.hist(slopes, bins=40, color="tab:red", alpha=0.6)
below.axvline(truth, color="black", ls="--", label=f"what was put in: {truth}")
below.set(xlabel="°C a year", ylabel="draws", title="How sure the trend is")
below.legend()
figure.savefig(sys.argv[1], dpi=120)
print(f"figure            {sys.argv[1]}")
"""

JOB = """
import time
for step in range(1, 11):
    print(f"step {step:2} of 10", flush=True)
    time.sleep(0.4)
"""

FAILING = """
rows = [{"city": "Oslo", "degrees": 4.1}, {"city": "Rome"}]
print(sum(row["degrees"] for row in rows))
"""

MISSING = "import a_module_nobody_has"


class NotAsExpectedError(Exception):
    """Something of the demo went otherwise than it must."""


def expect(fact: object, otherwise: str) -> None:
    if not fact:
        raise NotAsExpectedError(otherwise)


def chapter(title: str) -> None:
    print(f"\n── {title} {'─' * (WIDTH - 4 - len(title))}")


def say(text: str, mark: str = "") -> None:
    """Print text with a mark before its first line, and an indent before all others."""
    for number, line in enumerate(text.splitlines() or [""]):
        print(f"  {mark if number == 0 else '':9} {line}".rstrip(), flush=True)


class Server:
    """The server as a client's configuration would start it, in a state folder of its own."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._began = time.monotonic()

    def client(self) -> "Client[StdioTransport]":
        """Return a client that starts a server when it is entered, and ends it when it is left."""
        # Settings of your own stay out of it; all else (certificates, package index, proxy) is passed on.
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYEXEC_")}
        transport = StdioTransport(
            str(Path(sys.executable).with_name("pyexec")),
            ["serve", "--directory", str(ROOT)],
            env={**env, "PYEXEC_HOME": str(self._state)},
            keep_alive=False,
            log_file=self._state / "server-stderr.txt",
        )
        return Client(transport, progress_handler=self._on_progress)

    async def _on_progress(self, _progress: float, _total: float | None, message: str | None) -> None:
        say(f"{message}", "progress")


async def call(client: "Client[StdioTransport]", tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its structured result; a program that failed is a result like any other."""
    answer = await client.call_tool(tool, arguments, raise_on_error=False)
    expect(answer.structured_content is not None, f"{tool} answered without a structured result")
    return answer.structured_content or {}


async def analyse(client: "Client[StdioTransport]", figure: Path) -> None:
    chapter("A data analysis that needs packages")
    say(f"run_script_with_dependencies(dependencies={PACKAGES}, timeout_seconds={ANALYSIS_SECONDS:g}, …)", "call")
    say("Packages are fetched first when this machine has not seen them before; that may take a minute.", "")
    result = await call(
        client,
        "run_script_with_dependencies",
        script_content=ANALYSIS,
        dependencies=PACKAGES,
        args=[str(figure)],
        wait_seconds=ANALYSIS_SECONDS,
        timeout_seconds=ANALYSIS_SECONDS,
        job_label="temperatures",
    )
    expect(result.get("status") == "completed", f"the analysis ended so: {result.get('error')}\n{result.get('stderr')}")
    say(result["stdout"], "stdout")
    say(f"{result['status']}, exit code {result['exit_code']}, {result['elapsed_seconds']:.1f} s", "result")
    say(textwrap.fill(" ".join(result["resolved_dependencies"]), WIDTH - 12), "packages")
    resolved = {pin.partition("==")[0] for pin in result["resolved_dependencies"]}
    expect({"numpy", "matplotlib"} <= resolved, f"the packages are not among those resolved: {resolved}")
    width, height = png_size(figure)
    say(f"{figure} ({width} x {height} pixels)", "picture")


def png_size(path: Path) -> tuple[int, int]:
    expect(path.is_file(), f"there is no picture at {path}")
    head = path.read_bytes()[:24]
    expect(head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) == 24, f"{path} is not a PNG picture")
    width, height = struct.unpack(">II", head[16:])
    return int(width), int(height)


async def survive(server: Server) -> None:
    chapter("A job in the background, and a server that is killed meanwhile")
    seen: list[str] = []
    async with server.client() as client:
        say("run_script_in_dir(async_mode=true, use_uv=false, …)", "call")
        started = await call(
            client,
            "run_script_in_dir",
            directory=str(ROOT),
            script_content=JOB,
            use_uv=False,
            async_mode=True,
            job_label="ten steps",
        )
        job_id, cursor = started["job_id"], started["next_cursor"]
        expect(started["status"] in ("pending", "running"), f"the job should go on, but is {started['status']}")
        say(f"job {job_id} is {started['status']}", "result")
        cursor = await follow(client, job_id, cursor, seen, until=4)
        kill_server()
        say("The server was killed with SIGKILL; nobody guards the job now but its keeper.", "killed")
    await anyio.sleep(1)
    async with server.client() as client:
        say("Another server is asked for what came after the last cursor.", "restart")
        await follow(client, job_id, cursor, seen, until=None)
        status = (await call(client, "py_job_status", job_id=job_id))["job"]
    expect(status["status"] == "completed", f"the job ended {status['status']}: {status.get('error')}")
    expect(seen == [f"step {step:2} of 10" for step in range(1, 11)], f"lines were lost or came twice: {seen}")
    say(f"{status['status']}, exit code {status['result']['exit_code']}; 10 lines, each once", "result")


async def follow(client: "Client[StdioTransport]", job_id: str, cursor: str, seen: list[str], until: int | None) -> str:
    """Poll a job for what is new until so many lines were seen, or until it has ended; return the next cursor."""
    with anyio.fail_after(60):
        while True:
            answer = await call(client, "py_job_status", job_id=job_id, cursor=cursor)
            cursor = answer["next_cursor"]
            for line in answer["job"]["new_stdout"].splitlines():
                seen.append(line)
                say(line, "stdout")
            ended = answer["job"]["status"] not in ("pending", "running")
            if ended or (until is not None and len(seen) >= until):
                return cursor
            await anyio.sleep(0.3)


def kill_server() -> None:
    servers = [child for child in psutil.Process().children() if "serve" in child.cmdline()]
    expect(len(servers) == 1, f"there should be one server, not {len(servers)}")
    servers[0].kill()


async def fail(client: "Client[StdioTransport]") -> None:
    chapter("Programs that fail are results, not errors of the protocol")
    for code, arguments, error in (
        (FAILING, {}, "KeyError: 'degrees'"),
        (MISSING, {}, "ModuleNotFoundError: No module named 'a_module_nobody_has'"),
        ("while True: pass", {"timeout_seconds": 1}, "It ran longer than 1 s."),
    ):
        result = await call(
            client, "run_script_in_dir", directory=str(ROOT), script_content=code, use_uv=False, **arguments
        )
        say(code.strip(), "code")
        say(f"{result['status']}, exit code {result['exit_code']}", "result")
        say(result["error"], "error")
        if result.get("advice"):
            say(result["advice"], "advice")
        print()
        expect(result["error"].startswith(error), f"it should say {error!r}")
    refused = await call(client, "run_script_in_dir", directory="/no/such/folder", script_content="print(1)")
    say('run_script_in_dir(directory="/no/such/folder", …)', "call")
    say(f"{refused['error_code']}: {refused['error']}", "refused")
    expect(refused["error_code"] == "not_found", "a folder that is not there should be refused")


async def look_back(client: "Client[StdioTransport]") -> None:
    chapter("Every run is on record")
    listed = await call(client, "py_list_jobs")
    for job in listed["jobs"]:
        say(f"{job['id']}  {job['status']:9}  {job['elapsed_seconds']:7.2f} s  {job['label'] or ''}")
    states = sorted(job["status"] for job in listed["jobs"])
    expect(states == ["completed", "completed", "failed", "failed", "timed_out"], f"the states are {states}")


async def tour(state: Path, figure: Path) -> None:
    server = Server(state)
    began = time.monotonic()
    async with server.client() as client:
        tools = [tool.name for tool in await client.list_tools()]
        chapter(f"pyexec over stdio, ready after {time.monotonic() - began:.1f} s")
        say(textwrap.fill(", ".join(tools), WIDTH - 12), "tools")
        await analyse(client, figure)
    await survive(server)
    async with server.client() as client:
        await fail(client)
        await look_back(client)


def main() -> int:
    parser = argparse.ArgumentParser(description="A tour of pyexec: server and client, a figure, a job, failures.")
    parser.add_argument("--output", type=Path, default=ROOT / "demo-output", help="where the picture goes")
    parser.add_argument("--state", type=Path, help="a new or empty state folder to keep; default: a temporary one")
    options = parser.parse_args()
    output: Path = options.output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    figure = output / "temperatures.png"
    figure.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="pyexec-demo-") as temporary:
        state: Path = (options.state or Path(temporary)).absolute()
        state.mkdir(parents=True, exist_ok=True)
        try:
            anyio.run(tour, state, figure)
        except (NotAsExpectedError, TimeoutError, FastMCPError, MCPError) as problem:
            print(f"\nNot as expected: {problem or type(problem).__name__}", file=sys.stderr)
            log = state / "server-stderr.txt"
            if log.is_file() and log.stat().st_size:
                print(f"\nThe server said:\n{log.read_text(errors='replace')[-4000:]}", file=sys.stderr)
            return 1
    print(f"\nAll as expected. The picture is {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
