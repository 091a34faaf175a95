"""kill -9 for servers, launchers, keepers and programs at random points; what is left must be true."""

import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pyexec.domain.executions import Execution
from pyexec.sandbox.claims import is_held
from pyexec.sandbox.losses import KEEPER_ENDED, NEVER_STARTED
from tests.helpers.processes import all_pids, holding, name_of
from tests.integration.engine import Engine, Server, outcome_of

# How many of each are killed, once and in the long run.
KILLS = {
    "once": {"server": 1, "launcher": 1, "keeper": 2, "program": 2},
    "long": {"server": 4, "launcher": 3, "keeper": 9, "program": 9},
}
EXECUTIONS = {"once": 16, "long": 50}
LINES = 50
# The last word is how their children are known, whatever became of their environment and their parents.
PROGRAM = """
import subprocess, sys, time
if {number} % 3 == 0:
    subprocess.Popen(["sleep", "{mark}"], start_new_session=True, env={{}}, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
for line in range({lines}):
    print({number}, line, flush=True)
    time.sleep(0.02)
sys.exit({number} % 2)
"""


class Chaos:
    """Servers that are given work, and a hand that kills."""

    def __init__(self, home: Path, seed: int, length: str) -> None:
        self.home = home
        self.kills = KILLS[length]
        self.executions = EXECUTIONS[length]
        self.mark = f"86400.{seed}"
        self.killed: Counter[str] = Counter()
        self.touched: defaultdict[str, set[str]] = defaultdict(set)
        self._choose = random.Random(seed)
        self._servers: list[Server] = []
        self._number = 0

    def folders(self) -> list[Path]:
        """The folders of all executions so far."""
        return sorted((self.home / "executions").glob("*")) if (self.home / "executions").exists() else []

    def at_work(self) -> list[Path]:
        """The folders of executions that somebody guards."""
        return [folder for folder in self.folders() if is_held(folder)]

    def give_work(self) -> None:
        """Have servers submit some programs, without waiting for their answers; they may be behind with it."""
        while len(self._servers) < 2:
            self._servers.append(Server(self.home))
        if self._number - len(self.folders()) > 10 and self.at_work():
            return
        for _ in range(4):
            code = PROGRAM.format(number=self._number, mark=self.mark, lines=LINES)
            self._choose.choice(self._servers).tell(do="submit", code=code)
            self._number += 1

    def strike(self) -> None:
        """Kill one thing of a kind that is still due, if there is one just now."""
        due = [kind for kind, wanted in self.kills.items() if self.killed[kind] < wanted]
        for kind in self._choose.sample(due, len(due)):
            if getattr(self, f"_strike_{kind}")():
                self.killed[kind] += 1
                break
        time.sleep(self._choose.uniform(0.0, 0.2))

    def done(self) -> bool:
        """Tell whether all has been done that was planned."""
        return self.killed == Counter(self.kills) and len(self.folders()) >= self.executions

    def close(self) -> None:
        """Let the servers that are left finish what they were told, and end."""
        for each in self._servers:
            each.hang_up()
        for each in self._servers:
            each.close()

    def _strike_server(self) -> bool:
        if not self._servers or not self.folders():
            return False
        each = self._servers.pop(self._choose.randrange(len(self._servers)))
        each.kill()
        each.close()
        return True

    def _strike_launcher(self) -> bool:
        launchers = [pid for pid in all_pids() if parent_of(pid) in {each.pid for each in self._servers}]
        return bool(launchers) and kill(self._choose.choice(launchers))

    def _strike_keeper(self) -> bool:
        folder = self._one_at_work()
        if folder is None:
            return False
        self.touched[folder.name].add("keeper")
        if (folder / "started.json").exists():
            keeper = parent_of(program_of(folder))
            return "pyexec_guest/keeper" in name_of(keeper) and kill(keeper)
        servers = {each.pid for each in self._servers}
        keepers = [pid for pid in holding(folder / "lock") if pid not in servers and parent_of(pid) not in servers]
        return bool(keepers) and kill(self._choose.choice(keepers))

    def _strike_program(self) -> bool:
        folder = self._one_at_work()
        if folder is None or not (folder / "started.json").exists():
            return False
        self.touched[folder.name].add("program")
        return kill(program_of(folder))

    def _one_at_work(self) -> Path | None:
        at_work = self.at_work()
        return self._choose.choice(at_work) if at_work else None


def parent_of(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
    return 0


def program_of(folder: Path) -> int:
    return int(json.loads((folder / "started.json").read_bytes())["pid"])


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def require_truth(chaos: Chaos, execution: Execution, stdout: str) -> str:
    """Check one record against what was done to it; return what became of it."""
    outcome = outcome_of(execution)
    touched = chaos.touched[execution.id]
    lines = stdout.split("\n")[:-1]
    number = int(lines[0].split()[0]) if lines else 0
    assert "".join(f"{number} {line}\n" for line in range(LINES)).startswith(stdout), "not a true prefix"
    match outcome.kind:
        case "exited":
            assert outcome.exit_code == number % 2
            assert len(lines) == LINES
            assert [left.command for left in outcome.leftover_processes] == ["sleep"] * (number % 3 == 0)
        case "signalled":
            assert "program" in touched
            assert (outcome.signal, outcome.exit_code) == ("SIGKILL", 137)
        case "lost" if outcome.reason == NEVER_STARTED:
            assert not stdout
            assert outcome.started_at is None
            assert touched or chaos.killed["server"]
        case "lost":
            assert outcome.reason == KEEPER_ENDED
            assert "keeper" in touched
        case kind:
            raise AssertionError(f"nobody asked for {kind}")
    return outcome.kind


@pytest.mark.parametrize("length", ["once", pytest.param("long", marks=pytest.mark.exhaustive)])
async def test_whatever_is_killed_every_record_becomes_true_and_nothing_is_left(
    state_home: Path, make_engine: Callable[..., Engine], length: str
) -> None:
    seed = int(os.environ.get("CHAOS_SEED", time.time_ns() % 1_000_000))
    sys.stdout.write(f"CHAOS_SEED={seed}\n")
    (state_home.parent / "work").mkdir()
    chaos = Chaos(state_home, seed, length)
    try:
        while not chaos.done():
            if len(chaos.at_work()) < 10:
                chaos.give_work()
            chaos.strike()
    finally:
        chaos.close()

    engine = make_engine()
    found, total = await engine.executions.newest(engine.principal, states=None, limit=10_000)
    ended = [await engine.wait(execution) for execution in found]
    became = Counter([require_truth(chaos, execution, await engine.stdout(execution)) for execution in ended])
    sys.stdout.write(f"killed {dict(chaos.killed)}, became {dict(became)}\n")

    assert total >= chaos.executions - chaos.kills["server"] * 4
    assert became["exited"] >= chaos.executions // 3
    known = {execution.id for execution in found}
    unknown = [folder for folder in chaos.folders() if folder.name not in known]
    assert not [folder for folder in unknown if (folder / "started.json").exists()], "ran and has no record"
    assert not [name for pid in all_pids() if chaos.mark in (name := name_of(pid))]
    assert not list(state_home.glob("executions/*/keeper-error.txt"))
    database = sqlite3.connect(state_home / "pyexec.db")
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()
