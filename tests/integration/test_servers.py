"""Servers that come, go and are killed, on one state folder."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.executions import Execution
from tests.helpers.databases import MOSTLY_SQLITE, Place, place_of
from tests.helpers.processes import alive, belonging_to, eventually
from tests.integration.engine import Engine, Server, outcome_of, server

MakeServer = Callable[..., Server]

STEADY = (
    "import os, time\n"
    "print(os.getpid(), flush=True)\n"
    "number = 0\n"
    "while not os.path.exists('go'):\n"
    "    number += 1; print(number, flush=True); time.sleep(0.01)\n"
    "print('last', flush=True)\n"
)


@pytest.fixture(params=MOSTLY_SQLITE)
def place(request: pytest.FixtureRequest, state_home: Path) -> Place:
    return place_of(request.param, request, state_home)


@pytest.fixture
def make_server(place: Place) -> Iterator[MakeServer]:
    """Start server processes on one state folder."""
    (place.root.parent / "work").mkdir(exist_ok=True)
    servers: list[Server] = []
    with ExitStack() as stack:

        def start(**how: Any) -> Server:
            servers.append(stack.enter_context(server(place.root, **place.settings(), **how)))
            return servers[-1]

        yield start
        for each in servers:
            each.hang_up()


async def found_by(engine: Engine, execution_id: str) -> Execution:
    return await engine.executions.get(engine.principal, execution_id)


async def test_killing_the_server_loses_neither_the_execution_nor_a_byte(
    make_server: MakeServer, engine: Engine
) -> None:
    first = make_server()
    (execution_id,) = first.ask(do="submit", code=STEADY)
    execution = await found_by(engine, execution_id)
    engine.printed(execution, 5)

    first.kill()

    seen = engine.printed(execution, 5)
    engine.printed(execution, len(seen) + 20)
    assert (await engine.get(execution)).state == "running"
    (engine.directory / "go").touch()
    execution = await engine.wait(execution)
    _pid, *numbers, last = engine.printed(execution)
    assert (execution.state, last) == ("completed", "last")
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]


async def test_another_server_ends_what_a_killed_one_started(make_server: MakeServer, engine: Engine) -> None:
    first = make_server()
    (execution_id,) = first.ask(do="submit", code=STEADY)
    execution = await found_by(engine, execution_id)
    (pid,) = engine.pids(execution, 1)[:1]
    first.kill()

    execution = await engine.stop(execution)

    assert (execution.state, outcome_of(execution).stopped_by) == ("cancelled", "SIGINT")
    assert not alive(pid)


@pytest.mark.case("B121")
async def test_what_ended_while_no_server_was_there_is_found_as_it_ended(
    make_server: MakeServer, make_engine: Callable[..., Engine]
) -> None:
    first = make_server()
    (execution_id,) = first.ask(do="submit", code=STEADY + "raise SystemExit(9)")
    first.kill()
    engine = make_engine()
    execution = await found_by(engine, execution_id)
    engine.program(execution)
    (engine.directory / "go").touch()
    eventually((engine.folder(execution) / "outcome.json").exists)

    execution = await engine.get(execution)

    assert (execution.state, outcome_of(execution).exit_code) == ("failed", 9)
    assert engine.printed(execution)[-1] == "last"


@pytest.mark.parametrize("where", ["hand-over", "orders"])
async def test_a_server_killed_before_it_handed_over_leaves_an_execution_that_never_started(
    make_server: MakeServer, engine: Engine, where: str
) -> None:
    first = make_server()
    first.ask(do="hang", where=where)
    assert first.ask(do="submit", code="open('it-ran', 'w')") == "hanging"
    ((pending,), total) = await engine.executions.newest(engine.principal, states=None, limit=9)
    assert (pending.state, total) == ("pending", 1)

    first.kill()
    lost = await engine.wait(pending)

    assert lost.state == "lost"
    assert "never started" in str(outcome_of(lost).reason)
    assert not (engine.directory / "it-ran").exists()
    eventually(lambda: not belonging_to(engine.home))


async def test_what_ended_by_itself_after_its_server_was_killed_is_in_the_list(
    make_server: MakeServer, engine: Engine
) -> None:
    first = make_server()
    first.ask(do="hang", where="record")
    assert first.ask(do="submit", code="print('ran')") == "hanging"
    first.kill()
    eventually(lambda: list(engine.home.glob("executions/*/outcome.json")))
    eventually(lambda: not belonging_to(engine.home))

    ((found,), total) = await engine.executions.newest(engine.principal, states=None, limit=9)

    assert (found.state, total) == ("completed", 1)
    assert await engine.stdout(found) == "ran\n"


@pytest.mark.exhaustive
async def test_it_does_not_keep_its_place_in_line(make_server: MakeServer, make_engine: Callable[..., Engine]) -> None:
    engine = make_engine(concurrent=1)
    first = make_server(concurrent=1)
    first.ask(do="hang", where="hand-over")
    assert first.ask(do="submit", code="pass") == "hanging"
    next_in_line = await engine.submit("print('ran')")
    assert (await engine.get(next_in_line)).state == "pending"

    first.kill()

    assert (await engine.wait(next_in_line)).state == "completed"


@pytest.mark.exhaustive
async def test_a_server_that_was_started_in_the_background_runs_programs_that_can_be_interrupted(
    make_server: MakeServer, engine: Engine
) -> None:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        background = make_server()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    (execution_id,) = background.ask(do="submit", code=STEADY)
    execution = await found_by(engine, execution_id)
    engine.printed(execution)

    execution = await engine.stop(execution)

    assert "KeyboardInterrupt" in await engine.stderr(execution)


async def test_a_request_repeated_from_many_servers_runs_once(make_server: MakeServer, engine: Engine) -> None:
    servers = [make_server() for _ in range(3)]
    code = "import os; os.close(os.open('ran-once', os.O_CREAT | os.O_EXCL))"
    for each in servers:
        each.tell(do="submit", code=code, times=8, at_once=8, request_id="the same")

    answers = [execution_id for each in servers for execution_id in each.answer()]

    assert len(answers) == 24
    (execution_id,) = set(answers)
    execution = await engine.wait(await found_by(engine, execution_id))
    assert execution.state == "completed"
    assert await engine.executions.newest(engine.principal, states=None, limit=9) == ([execution], 1)
    assert [path.name for path in (engine.home / "executions").iterdir()] == [execution_id]


async def test_the_same_request_id_with_other_code_is_the_first_execution(engine: Engine) -> None:
    first = await engine.run("print('first')", request_id="r")
    second = await engine.run("print('second')", request_id="r")

    assert second == first


@pytest.fixture
def quick_python(tmp_path: Path) -> Path:
    """A folder with a python3 that runs no program, so that what is left to measure is ours."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\ncase "$1" in -*) exec {sys.executable} "$@" ;; esac\n')
    python.chmod(0o755)
    return python.parent


@pytest.mark.parametrize(
    ("count", "executions"), [(3, 24), pytest.param(8, 160, marks=pytest.mark.exhaustive)], ids=["some", "many"]
)
def test_servers_run_many_executions_without_getting_in_each_others_way(
    make_server: MakeServer, place: Place, quick_python: Path, count: int, executions: int
) -> None:
    servers = [make_server(path=quick_python, queued=2 * executions) for _ in range(count)]
    for each in servers:
        each.tell(do="submit", code="pass", times=executions // count, at_once=4)
    ids = [each.answer() for each in servers]
    # Each waits for what another one has started.
    for number, each in enumerate(servers):
        each.tell(do="wait", ids=ids[number - 1], seconds=100)
    states = [state for each in servers for state in each.answer()]

    assert states == ["completed"] * executions
    everything = [execution_id for part in ids for execution_id in part]
    assert len(set(everything)) == executions
    listed = servers[0].ask(do="states")
    assert {execution_id for execution_id, _state in listed} == set(everything)
    pids = [json.loads(path.read_bytes())["pid"] for path in place.root.glob("executions/*/started.json")]
    assert len(pids) == executions
    assert place.query("SELECT state, count(*) FROM executions GROUP BY state") == [("completed", executions)]
    if place.server is None:
        assert place.query("PRAGMA integrity_check") == [("ok",)]
    assert not list(place.root.glob("executions/*/keeper-error.txt"))
    (queue,) = (place.root / "queues").iterdir()
    assert [name for name in os.listdir(queue) if not name.startswith(".")] == []
