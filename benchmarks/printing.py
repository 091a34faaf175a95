"""How fast a program can print, and how much memory that takes from us: against the same program writing to a file."""

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from bench import Bench
from figures import Figure, Target, as_speed, interleave
from installation import BenchmarkError
from mcp_client import McpClient
from processes import RUN_SECONDS, forget_peak, parent, resident_bytes

FULL_BYTES = 1_000_000_000
QUICK_BYTES = 100_000_000
GROWTH_LIMIT = 64 * 2**20
LOOK_SECONDS = 0.02

# A program that is run for somebody has each line shown at once (LIVE is what it is started with) unless they say
# otherwise, so it is compared with both: what the script does by itself, and what it does when it holds nothing back.
LIVE = {"PYTHONUNBUFFERED": "1"}
BUFFERED = {"PYTHONUNBUFFERED": ""}

# Script, what it does, the promised share of a file's speed, rounds: the quicker it is, the more they differ.
SCRIPTS = (("print_lines.py", "print loop", 0.8, 3), ("write_blocks.py", "raw 1 MB writes", 0.3, 7))


class KeeperWatch:
    """Watches, from a thread, how much memory the keeper of the next execution takes."""

    def __init__(self, home: Path) -> None:
        self.growth = 0
        self._executions = home / "executions"
        self._known = set(self._executions.iterdir())
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        keeper = first = None
        while not self._done.wait(LOOK_SECONDS):
            keeper = keeper or self._find()
            if keeper is None:
                continue
            first = first or resident_bytes(keeper)
            peak = resident_bytes(keeper, peak=True)
            if first is not None and peak is not None:
                self.growth = max(self.growth, peak - first)

    def _find(self) -> int | None:
        for folder in set(self._executions.iterdir()) - self._known:
            try:
                pid = json.loads((folder / "started.json").read_bytes())["pid"]
            except (OSError, ValueError):
                continue
            return parent(pid)
        return None


def measure(bench: Bench) -> list[Figure]:
    size = QUICK_BYTES if bench.quick else FULL_BYTES
    home = bench.new_folder("home")
    figures: list[Figure] = []
    growths: list[int] = []
    with bench.serve(home) as client:
        bench.greet(client)

        def to_us(script: str, variables: dict[str, str]) -> Callable[[], float]:
            return lambda: _to_us(bench, client, home, script, size, variables, growths)

        for script, what, share, rounds in SCRIPTS:
            ours, ours_buffered, file_buffered, file_live = interleave(
                rounds,
                to_us(script, {}),
                to_us(script, BUFFERED),
                _to_file(bench, script, size),
                _to_file(bench, script, size, **LIVE),
            )
            shown = f"{size / 1e6:,.0f} MB, {what}"
            figures += [
                # Like is held against like: lines that can be read at once, and Python's own blocks. The last row
                # is what it costs to read along.
                as_speed(f"{shown}: against a file, PYTHONUNBUFFERED=1", size, ours, file_live, at_least=share),
                as_speed(
                    f"{shown}, PYTHONUNBUFFERED='': against a file", size, ours_buffered, file_buffered, at_least=share
                ),
                as_speed(f"{shown}: against a file in blocks", size, ours, file_buffered),
            ]
    largest = max(growths)
    figures.append(
        Figure(
            what="the same: growth of server and keeper together",
            value=largest / 2**20,
            unit="MB",
            target=Target(f"< {GROWTH_LIMIT // 2**20} MB", largest < GROWTH_LIMIT),
            samples=len(growths),
        )
    )
    return figures


def _to_us(
    bench: Bench, client: McpClient, home: Path, script: str, size: int, variables: dict[str, str], growths: list[int]
) -> float:
    """Run a script through the server; return the seconds it says it took, and note how much memory that took."""
    before = resident_bytes(client.pid) or 0
    forget_peak(client.pid)
    with KeeperWatch(home) as keeper:
        answer = client.call(
            "run_script_in_dir",
            directory=str(bench.programs),
            script_path=script,
            args=[str(size)],
            env_vars=variables,
            use_uv=False,
            wait_seconds=RUN_SECONDS,
        )
    peak = resident_bytes(client.pid, peak=True) or 0
    if answer["exit_code"] != 0 or answer["stdout_bytes"] != size:
        raise BenchmarkError(f"{script} printed {answer['stdout_bytes']} bytes and ended with {answer['exit_code']}")
    growths.append(max(0, peak - before) + keeper.growth)
    return float(answer["stderr"])


def _to_file(bench: Bench, script: str, size: int, **variables: str) -> Callable[[], float]:
    """Return what runs a script with its output in a file on the disk of the state folder; it says how long it took."""

    def write() -> float:
        path = bench.folder / "printed"
        with path.open("wb") as file:
            done = subprocess.run(
                [bench.installation.python, script, str(size)],
                cwd=bench.programs,
                env=bench.installation.environ(**variables),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.PIPE,
                timeout=RUN_SECONDS,
                check=True,
            )
        written = path.stat().st_size
        path.unlink()
        if written != size:
            raise BenchmarkError(f"{script} wrote {written} bytes in place of {size}")
        return float(done.stderr)

    return write
