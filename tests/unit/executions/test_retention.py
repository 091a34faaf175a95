import fcntl
import os
import time
from collections.abc import Iterable
from typing import Any

import anyio
import pytest

from pyexec.domain.errors import InvalidArgumentError, RecordsUnavailableError
from pyexec.domain.executions import State
from pyexec.domain.limits import DAY
from pyexec.domain.principals import Principal
from pyexec.executions.retention import ORPHAN_SECONDS, PruneResult
from pyexec.storage.descriptors import write_descriptor
from tests.helpers.records import execution
from tests.helpers.waiting import eventually
from tests.unit.executions.world import OTHER, OWNER, World


async def prune(world: World, principal: Principal = OWNER, **how: Any) -> PruneResult:
    given: dict[str, Any] = {"keep_completed": False, "keep_failed": False, "max_age_hours": None}
    return await world.retention().prune(principal, **(given | how))


async def test_pruning_removes_all_that_has_ended_and_nothing_else(world: World) -> None:
    kept = [world.add("pending"), world.add("running")]
    ended: list[State] = ["completed", "failed", "cancelled", "timed_out", "lost"]
    for state in ended:
        world.add(state)

    assert await prune(world) == PruneResult(removed=5, remaining=2)
    assert world.left() == kept


async def test_pruning_can_spare_successes(world: World) -> None:
    kept = world.add("completed")
    world.add("failed")
    world.add("cancelled")

    assert await prune(world, keep_completed=True) == PruneResult(removed=2, remaining=1)
    assert world.left() == [kept]


async def test_pruning_can_spare_failures_of_every_kind(world: World) -> None:
    world.add("completed")
    kept = [world.add("failed"), world.add("cancelled"), world.add("timed_out"), world.add("lost")]

    assert await prune(world, keep_failed=True) == PruneResult(removed=1, remaining=4)
    assert world.left() == kept


async def test_pruning_spares_what_is_younger_than_was_said(world: World) -> None:
    kept = world.add(hours_ago=1.9)
    world.add(hours_ago=2.1)

    assert await prune(world, max_age_hours=2) == PruneResult(removed=1, remaining=1)
    assert world.left() == [kept]


async def test_an_age_of_zero_is_any_age(world: World) -> None:
    world.add(hours_ago=0)

    assert await prune(world, max_age_hours=0) == PruneResult(removed=1, remaining=0)


async def test_pruning_leaves_what_belongs_to_others(world: World) -> None:
    kept = world.add(owner=OTHER)

    assert await prune(world) == PruneResult(removed=0, remaining=0)
    assert world.left() == [kept]


@pytest.mark.parametrize("hours", [-1.0, 1e7, float("nan"), float("inf")])
async def test_an_age_that_makes_no_sense_is_refused(world: World, hours: float) -> None:
    world.add()

    with pytest.raises(InvalidArgumentError, match="max_age_hours"):
        await prune(world, max_age_hours=hours)
    assert len(world.left()) == 1


def test_a_sweep_removes_what_is_too_old_of_every_owner(world: World) -> None:
    world.add(hours_ago=50)
    world.add(hours_ago=49, owner=OTHER)
    kept = [world.add(hours_ago=47), world.add("running", hours_ago=1000)]

    assert world.retention(retention_age=2 * DAY).sweep() == 2
    assert world.left() == kept


def test_a_sweep_removes_the_oldest_until_the_rest_fits(world: World) -> None:
    world.add(size=4000)
    world.add(size=4000)
    kept = [world.add(size=4000), world.add("running", size=10**6)]

    assert world.retention(retention_size=9000).sweep() == 1
    assert world.retention(retention_size=5000).sweep() == 1
    assert world.left() == kept


def test_every_owner_has_room_of_their_own(world: World) -> None:
    kept = [world.add(size=4000), world.add(size=4000, owner=OTHER)]

    assert world.retention(retention_size=5000).sweep() == 0
    assert world.left() == kept


def test_a_sweep_removes_old_folders_that_no_record_knows(world: World) -> None:
    kept = world.add()
    stray, fresh = world.folder.execution("a" * 32), world.folder.execution("b" * 32)
    for folder in (stray, fresh):
        folder.mkdir()
        (folder / "code").mkdir()
    long_ago = time.time() - ORPHAN_SECONDS - 60
    os.utime(stray, (long_ago, long_ago))
    os.utime(world.folder.execution(kept.id), (long_ago, long_ago))

    assert world.retention().sweep() == 1
    assert sorted(folder.name for folder in world.folder.executions.iterdir()) == sorted([kept.id, fresh.name])


def test_one_server_sweeps_at_a_time(world: World) -> None:
    kept = world.add(hours_ago=1000)
    with open(world.folder.root / "sweep.lock", "w") as other_server:
        fcntl.flock(other_server, fcntl.LOCK_EX)

        assert world.retention(retention_age=DAY).sweep() == 0
        assert world.left() == [kept]
    assert world.retention(retention_age=DAY).sweep() == 1


async def test_before_anything_is_swept_what_the_database_has_lost_is_found_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyexec.executions.retention.FIRST_SWEEP_SECONDS", 0)
    record = execution(1, owner=OWNER.key, created_at=time.time())
    folder = world.folder.execution(record.id)
    folder.mkdir()
    write_descriptor(folder, record)
    os.utime(folder, (0, 0))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.retention(sweep_interval=0.01).sweep_forever)
        await eventually(lambda: world.store.count(OWNER.key, ["lost"]))
        tasks.cancel_scope.cancel()
    assert [one.id for one in world.left()] == [record.id]


async def test_a_database_that_cannot_be_used_for_a_while_does_not_end_the_sweeping(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyexec.executions.retention.FIRST_SWEEP_SECONDS", 0)
    retention = world.retention(retention_age=DAY, sweep_interval=0.01)
    world.add(hours_ago=1000)
    known, failed = world.store.known, anyio.Event()

    def fail_once(_ids: list[str]) -> set[str]:
        monkeypatch.setattr(world.store, "known", known)
        anyio.from_thread.run_sync(failed.set)
        raise RecordsUnavailableError("gone")

    monkeypatch.setattr(world.store, "known", fail_once)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(retention.sweep_forever)
        await failed.wait()
        await eventually(lambda: not world.store.count(OWNER.key))
        tasks.cancel_scope.cancel()


# -- a database that was lost ---------------------------------------------------------------------------------------


def lose_the_database(world: World) -> World:
    world.database.require()
    world.database.close()
    world.place.lose()
    return World(world.place)


def test_records_are_made_anew_from_the_folders_in_the_order_of_submission(world: World) -> None:
    records = [execution(number, owner=OWNER.key, created_at=1000.0 - number) for number in (1, 2, 3)]
    for record in records:
        folder = world.folder.execution(record.id)
        folder.mkdir()
        write_descriptor(folder, record)
    (world.folder.executions / ("c" * 32)).mkdir()

    found = lose_the_database(world)

    assert found.recovery.recover() == 3
    assert found.store.page(OWNER.key, states=None, limit=9)[0] == records
    assert found.recovery.recover() == 0


def test_what_cannot_be_recovered_keeps_nothing_else_from_being_so(world: World) -> None:
    twin = execution(1, owner=OWNER.key, request_id="r", created_at=100.0)
    other_twin = execution(2, owner=OWNER.key, request_id="r", created_at=101.0)
    sound = execution(3, owner=OWNER.key, created_at=102.0)
    for record in (twin, other_twin, sound):
        folder = world.folder.execution(record.id)
        folder.mkdir()
        write_descriptor(folder, record)
    torn = world.folder.execution("d" * 32)
    torn.mkdir()
    (torn / "execution.json").write_text('{"id": "dd')

    found = lose_the_database(world)
    found.recovery.recover()

    left = {record.id for record in found.store.page(OWNER.key, states=None, limit=9)[0]}
    assert {twin.id, sound.id} <= left


def test_two_servers_that_recover_together_do_not_get_in_each_others_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = execution(1, owner=OWNER.key)
    folder = world.folder.execution(record.id)
    folder.mkdir()
    write_descriptor(folder, record)
    found = lose_the_database(world)
    known = found.store.known

    def known_before_the_other_server_was_faster(ids: list[str]) -> set[str]:
        answer = known(ids)
        monkeypatch.undo()
        World(world.place).recovery.recover()
        return answer

    monkeypatch.setattr(found.store, "known", known_before_the_other_server_was_faster)
    found.recovery.recover()

    assert found.store.page(OWNER.key, states=None, limit=9)[0] == [record]


def test_what_is_just_being_removed_is_not_found_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    record = world.add("completed")
    write_descriptor(world.folder.execution(record.id), record)
    really = world.store.remove

    def remove(owner: str, ids: Iterable[str]) -> int:
        removed = really(owner, ids)
        world.recovery.recover()  # Another server has noticed just now that a third one was killed.
        return removed

    monkeypatch.setattr(world.store, "remove", remove)
    assert world.retention().remove(OWNER.key, [record]) == 1
    assert world.left() == []


def test_what_cannot_be_removed_is_where_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    record = world.add("completed")

    def remove(_owner: str, _ids: Iterable[str]) -> int:
        raise RecordsUnavailableError("It does not answer.")

    monkeypatch.setattr(world.store, "remove", remove)
    with pytest.raises(RecordsUnavailableError):
        world.retention().remove(OWNER.key, [record])
    assert world.left() == [record]
