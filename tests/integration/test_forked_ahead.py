"""The process that a keeper has forked before it is asked: it becomes the program, or is gone."""

import os
import signal
from collections.abc import Callable

from pyexec_guest.keeper import linux
from tests.helpers.homes import processes_of
from tests.helpers.processes import alive, eventually
from tests.integration.engine import Engine, gone, outcome_of

MakeEngine = Callable[..., Engine]


def forked_ahead(engine: Engine) -> list[int]:
    """Return the process that the keeper which waits has forked; only while nothing runs."""
    launcher = engine.launcher()
    waiting = {each.pid for each in processes_of(engine.home)} - {launcher}
    return [pid for pid in waiting if parent(pid) in waiting]


def parent(pid: int) -> int:
    fields = linux.stat_fields(pid)
    return int(fields[1]) if fields else 0


async def test_a_program_is_the_process_that_was_forked_ahead(engine: Engine) -> None:
    (ahead,) = eventually(lambda: forked_ahead(engine))
    execution = await engine.run("import os; print(os.getpid(), os.getsid(0))")
    assert await engine.stdout(execution) == f"{ahead} {ahead}\n"


async def test_where_it_was_killed_the_program_runs_all_the_same(engine: Engine) -> None:
    (ahead,) = eventually(lambda: forked_ahead(engine))
    os.kill(ahead, signal.SIGKILL)
    eventually(lambda: linux.stat_fields(ahead)[:1] in ([], ["Z"]))
    execution = await engine.run("import os; print(os.getpid())")
    assert execution.state == "completed"
    assert await engine.stdout(execution) != f"{ahead}\n"


async def test_it_goes_with_the_keeper_and_with_the_launcher(engine: Engine) -> None:
    (ahead,) = eventually(lambda: forked_ahead(engine))
    os.kill(parent(ahead), signal.SIGKILL)
    gone([ahead])
    assert (await engine.run("print(1)")).state == "completed"
    (ahead,) = eventually(lambda: forked_ahead(engine))
    os.kill(engine.launcher(), signal.SIGKILL)
    gone([ahead])


async def test_what_waits_in_line_holds_none(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=1)
    first = await engine.submit("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)")
    engine.program(first)
    second = await engine.submit("print(2)")
    keeper = engine.keeper(second)
    eventually(lambda: linux.family(keeper) == [])
    assert alive(keeper)
    (engine.directory / "go").touch()
    assert (await engine.wait(second)).state == "completed"


async def test_a_program_that_cannot_be_started_is_said_as_ever(engine: Engine) -> None:
    eventually(lambda: forked_ahead(engine))
    blocked = await engine.submit("print(1)", env_vars={f"LONG_{n}": "x" * 100_000 for n in range(80)})
    outcome = outcome_of(await engine.wait(blocked))
    assert outcome.kind == "start_failed"
    assert "could not run" in (outcome.reason or "")
