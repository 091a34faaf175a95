"""Time-outs, cancellation and kill end the whole tree, whatever it does about it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from pyexec.domain.executions import Execution
from pyexec_guest import log
from tests.helpers.processes import alive
from tests.helpers.waiting import eventually, with_enough_time
from tests.integration.engine import Engine, gone, outcome_of
from tests.integration.programs import DEAF_TO, FAMILY, FOUR_BUSY_LOOPS

ANSWERED_SECONDS = 30.0
"""Within 3 s is promised; the rest is for a machine that is busy with other things."""


@contextmanager
def busy_machine() -> Generator[None]:
    loops = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(4)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


async def require_everything_ended(engine: Engine, execution: Execution, asked_at: float) -> None:
    """Check the promises about an execution that was told to end at that time; it has just been answered."""
    outcome = outcome_of(execution)
    assert time.time() - asked_at <= ANSWERED_SECONDS
    first, *numbers = engine.printed(execution)
    family: dict[str, int] = json.loads(first)
    assert len(family) == 8
    gone(list(family.values()))
    noted = (engine.directory / "ticks").read_text().splitlines()
    assert noted
    assert numbers[: len(noted)] == noted, "output from before the end was lost"
    assert len(numbers) <= len(noted) + 1
    assert (engine.folder(execution) / "stdout").stat().st_size == outcome.stdout_bytes, "written after the end"
    group = json.loads((engine.folder(execution) / "started.json").read_bytes())["group"]
    await eventually(lambda: group is None or not Path(group).exists())


async def timed_out(engine: Engine, code: str) -> Execution:
    """Run a program until its time is over, which is not before it has printed something."""
    execution, _seconds = await with_enough_time(
        lambda seconds: engine.run(code, timeout_seconds=seconds), lambda execution: outcome_of(execution).stdout_bytes
    )
    assert execution.state == "timed_out"
    return execution


def signals_sent(engine: Engine, execution: Execution) -> list[str]:
    return [entry["signal"] for entry in log.events(str(engine.folder(execution))) if entry.get("signal")]


@pytest.mark.case("B005")
@pytest.mark.case("B130")
async def test_a_time_out_ends_a_family_that_resists_in_every_way_on_a_busy_machine(engine_by: Engine) -> None:
    async def ask(seconds: float) -> Execution:
        (engine_by.directory / "ticks").unlink(missing_ok=True)
        execution = await engine_by.submit(FAMILY, timeout_seconds=seconds)
        output = engine_by.folder(execution) / "stdout"
        ended = engine_by.folder(execution) / "outcome.json"
        await eventually(lambda: ended.exists() or (output.exists() and output.read_bytes().count(b"\n") > 1))
        with busy_machine():
            return await engine_by.wait(execution)

    execution, seconds = await with_enough_time(
        ask, lambda execution: len((engine_by.folder(execution) / "stdout").read_bytes().splitlines()) > 2, times=2
    )
    outcome = outcome_of(execution)
    assert outcome.started_at is not None
    await require_everything_ended(engine_by, execution, outcome.started_at + seconds)
    assert execution.state == "timed_out"
    assert (outcome.exit_code, outcome.signal, outcome.stopped_by) == (137, "SIGKILL", "SIGKILL")
    assert outcome.reason == f"It ran longer than {seconds:g} s."


@pytest.mark.parametrize("mode", ["cancel", "kill"])
async def test_being_stopped_ends_a_family_that_resists_in_every_way(engine_by: Engine, mode: str) -> None:
    execution = await engine_by.submit(FAMILY)
    engine_by.printed(execution, 2)

    asked_at = time.time()
    execution = await engine_by.stop(execution, mode, "I have seen enough.")

    await require_everything_ended(engine_by, execution, asked_at)
    outcome = outcome_of(execution)
    assert execution.state == "cancelled"
    assert (outcome.exit_code, outcome.signal, outcome.stopped_by) == (137, "SIGKILL", "SIGKILL")
    assert outcome.reason == "I have seen enough."


@pytest.mark.case("B127")
async def test_busy_loops_are_gone_after_a_cancel(engine_by: Engine) -> None:
    execution = await engine_by.submit(FOUR_BUSY_LOOPS)
    pids = engine_by.pids(execution, 5)
    assert all(alive(pid) for pid in pids)

    execution = await engine_by.stop(execution)

    gone(pids)
    assert execution.state == "cancelled"


@pytest.mark.parametrize(
    "each_time",
    [
        pytest.param("", id="one session", marks=pytest.mark.exhaustive),
        pytest.param("os.setsid()", id="ever new sessions"),
    ],
)
async def test_a_process_that_forks_away_all_the_time_is_caught(
    engine_by: Engine, each_time: str, tmp_path: Path
) -> None:
    # Whoever descends from it holds the writing end, so the kernel tells whether one is left.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    execution = await engine_by.run(
        f"import os\nwriting = os.open({str(pipe)!r}, os.O_WRONLY)\n"
        "if os.fork(): os._exit(0)\nos.setsid()\nos.write(writing, b'.')\n"
        f"while True:\n    if os.fork(): os._exit(0)\n    {each_time}\n"
    )

    assert execution.state == "completed"
    assert os.read(reading, 10) == b"."
    assert os.read(reading, 10) == b""
    os.close(reading)


@pytest.mark.case("B008")
@pytest.mark.parametrize(
    ("ignored", "stopped_by", "exit_code"),
    [
        ([], "SIGINT", 130),
        (["SIGINT"], "SIGTERM", 143),
        (["SIGINT", "SIGTERM"], "SIGKILL", 137),
    ],
)
async def test_it_is_interrupted_then_asked_then_killed_and_the_result_says_which(
    engine: Engine, ignored: list[str], stopped_by: str, exit_code: int
) -> None:
    numbers = "[" + ", ".join(f"signal.{name}" for name in ignored) + "]"
    execution = await engine.submit(DEAF_TO.format(numbers=numbers))
    engine.printed(execution)

    execution = await engine.stop(execution)

    outcome = outcome_of(execution)
    assert (outcome.stopped_by, outcome.signal, outcome.exit_code) == (stopped_by, stopped_by, exit_code)


async def test_a_program_that_tidies_up_when_it_is_interrupted_has_the_time_for_it(engine: Engine) -> None:
    execution = await engine.submit(
        "import time, sys\n"
        "print('ready', flush=True)\n"
        "try: time.sleep(60)\n"
        "except KeyboardInterrupt: print('tidied up', flush=True); sys.exit(7)\n"
    )
    engine.printed(execution)

    execution = await engine.stop(execution)

    outcome = outcome_of(execution)
    assert (execution.state, outcome.exit_code, outcome.signal, outcome.stopped_by) == ("cancelled", 7, None, "SIGINT")
    assert await engine.stdout(execution) == "ready\ntidied up\n"


async def test_a_kill_overrides_a_cancel_that_is_under_way(engine: Engine) -> None:
    execution = await engine.submit(DEAF_TO.format(numbers="[signal.SIGINT, signal.SIGTERM]"))
    engine.printed(execution)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.stop, execution, "cancel", "Please.")
        await eventually(lambda: signals_sent(engine, execution))
        execution = await engine.stop(execution, "kill", "At once.")

    assert outcome_of(execution).stopped_by == "SIGKILL"
    assert signals_sent(engine, execution) == ["SIGINT", "SIGKILL"]


async def test_a_stopped_program_is_ended_too(engine: Engine) -> None:
    execution = await timed_out(
        engine, "import os, signal; print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
    )

    (pid,) = engine.pids(execution, 1)
    assert not alive(pid)


@pytest.mark.case("B017")
async def test_a_thread_that_stays_does_not_outlive_the_time_out(engine: Engine) -> None:
    execution = await timed_out(
        engine, "import threading, time; threading.Thread(target=time.sleep, args=(300,)).start(); print('main done')"
    )

    assert await engine.stdout(execution) == "main done\n"


@pytest.mark.case("B018")
@pytest.mark.parametrize("code", ["sum(range(10**12))", 'import re; re.match("(a+)+$", "a" * 40 + "b")'])
async def test_one_long_call_that_never_comes_back_to_python_is_ended(engine: Engine, code: str) -> None:
    execution = await engine.run(code, timeout_seconds=0.3)

    outcome = outcome_of(execution)
    assert outcome.started_at is not None
    assert (execution.state, outcome.stopped_by) in {("timed_out", "SIGINT"), ("timed_out", "SIGTERM")}
    assert outcome.ended_at <= outcome.started_at + 0.3 + ANSWERED_SECONDS


@pytest.mark.case("B021")
async def test_a_child_that_asks_again_and_again_ends_at_the_time_out(engine: Engine) -> None:
    execution = await timed_out(
        engine,
        "import subprocess, sys\n"
        "while subprocess.run([sys.executable, '-S', '-c', 'input()'], stderr=subprocess.DEVNULL).returncode:\n"
        "    print('again', flush=True)\n",
    )

    assert set((await engine.stdout(execution)).split()) == {"again"}


async def test_what_ended_in_time_is_not_timed_out(engine: Engine) -> None:
    execution = await engine.run("print('quick')", timeout_seconds=30)

    assert execution.state == "completed"


async def test_stopping_what_has_ended_changes_nothing(engine: Engine) -> None:
    execution = await engine.run("print('done')")

    assert await engine.stop(execution) == execution
    assert await engine.stop(execution, "kill") == execution
