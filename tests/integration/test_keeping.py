"""What is kept, for how long, and what is made anew from it."""

import os
import shutil
from collections.abc import Callable

import pytest

from pyexec.domain.errors import NotFoundError, StateVersionError
from pyexec.domain.executions import Execution
from tests.helpers.databases import Place
from tests.helpers.processes import eventually
from tests.integration.engine import Engine, outcome_of

MakeEngine = Callable[..., Engine]


@pytest.fixture
def place(any_place: Place) -> Place:
    return any_place


UP = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def ended_unseen(engine: Engine, execution: Execution) -> None:
    eventually((engine.folder(execution) / "outcome.json").exists)


async def test_a_sweep_removes_what_ended_though_nobody_looked(make_engine: MakeEngine) -> None:
    engine = make_engine(retention_days=0)
    unseen, running = await engine.submit("print('x')"), await engine.submit(UP)
    ended_unseen(engine, unseen)
    engine.printed(running)

    engine.services.retention.sweep()

    with pytest.raises(NotFoundError):
        await engine.get(unseen)
    assert not engine.folder(unseen).exists()
    assert (await engine.get(running)).state == "running"
    await engine.stop(running, "kill")


async def test_pruning_removes_what_ended_though_nobody_looked(engine: Engine) -> None:
    unseen, running = await engine.submit("print('x')"), await engine.submit(UP)
    ended_unseen(engine, unseen)
    engine.printed(running)

    result = await engine.services.retention.prune(
        engine.principal, keep_completed=False, keep_failed=False, max_age_hours=None
    )

    assert (result.removed, result.remaining) == (1, 1)
    assert await engine.stdout(running)
    await engine.stop(running, "kill")


async def test_a_sweep_makes_room_by_size_and_counts_the_code_too(make_engine: MakeEngine) -> None:
    engine = make_engine(retention_mb=1)
    first = await engine.run("#" * 600_000)
    second = await engine.run("#" * 600_000)

    engine.services.retention.sweep()

    assert not engine.folder(first).exists()
    assert (await engine.get(second)).state == "completed"


async def test_what_was_removed_is_gone_for_everybody(make_engine: MakeEngine) -> None:
    one, other = make_engine(), make_engine()
    execution = await one.run("print('x')", request_id="r")

    await one.services.retention.prune(one.principal, keep_completed=False, keep_failed=False, max_age_hours=None)

    for engine in (one, other):
        with pytest.raises(NotFoundError) as refusal:
            await engine.get(execution)
        assert refusal.value.code == "not_found"
    again = await other.run("print('x')", request_id="r")
    assert again.id != execution.id


async def test_a_folder_that_somebody_removed_is_told_as_lost(engine: Engine) -> None:
    execution = await engine.submit("print('x')")
    ended_unseen(engine, execution)
    eventually(lambda: not (engine.folder(execution) / "socket").exists())

    shutil.rmtree(engine.folder(execution))

    execution = await engine.get(execution)
    assert (execution.state, "removed" in str(outcome_of(execution).reason)) == ("lost", True)
    assert await engine.stdout(execution) == ""


async def test_a_lost_database_is_made_anew_with_what_runs_and_what_has_ended(
    place: Place, make_engine: MakeEngine
) -> None:
    first = make_engine()
    ended = await first.run("print('kept'); raise SystemExit(3)", label="mine", request_id="r")
    running = await first.submit(UP)
    (pid,) = first.pids(running, 1)
    first.close()
    place.lose()

    second = make_engine()

    found, total = await second.executions.newest(second.principal, states=None, limit=9)
    assert total == 2
    assert [(each.id, each.state) for each in found] == [(running.id, "running"), (ended.id, "failed")]
    assert await second.get(ended) == ended
    assert await second.stdout(ended) == "kept\n"
    assert (await second.submit("pass", request_id="r")).id == ended.id
    assert (await second.stop(running)).state == "cancelled"
    eventually(lambda: not os.path.exists(f"/proc/{pid}"))


async def test_what_runs_goes_on_though_a_newer_version_has_migrated_the_state_folder(
    place: Place, engine: Engine
) -> None:
    execution = await engine.submit("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('done')")
    engine.program(execution)
    version = place.version()
    place.set_version(version + 1)

    with pytest.raises(StateVersionError):
        await engine.get(execution)
    with pytest.raises(StateVersionError):
        await engine.submit("print(1)")
    (engine.directory / "go").touch()
    ended_unseen(engine, execution)
    place.set_version(version)

    assert (await engine.wait(execution)).state == "completed"
    assert len(list((engine.home / "executions").iterdir())) == 1


async def test_a_beginning_of_an_id_means_the_execution(engine: Engine) -> None:
    execution = await engine.run("print(1)")

    assert await engine.executions.resolve(engine.principal, execution.id[:6]) == execution.id
    assert await engine.executions.resolve(engine.principal, execution.id) == execution.id
    for unknown in (execution.id[:3], "zzzz", ""):
        with pytest.raises(NotFoundError):
            await engine.executions.resolve(engine.principal, unknown)


async def test_the_newest_are_listed_first_by_state(engine: Engine) -> None:
    good = await engine.run("print(1)")
    bad = await engine.run("1/0")
    running = await engine.submit(UP)
    engine.printed(running)

    async def listed(*states: str, limit: int = 9) -> tuple[list[str], int]:
        wanted: list[object] = list(states)
        found, total = await engine.executions.newest(engine.principal, states=wanted or None, limit=limit)  # pyright: ignore[reportArgumentType]
        return [each.id for each in found], total

    assert await listed() == ([running.id, bad.id, good.id], 3)
    assert await listed(limit=1) == ([running.id], 3)
    assert await listed("failed") == ([bad.id], 1)
    assert await listed("completed", "failed") == ([bad.id, good.id], 2)
    assert [each.id for each in await engine.executions.active(engine.principal)] == [running.id]
    await engine.stop(running, "kill")
    assert await listed("running") == ([], 0)
