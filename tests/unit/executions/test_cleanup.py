"""What is cleaned up, what is never touched, and that a dry run says the same and does nothing."""

import os
import time
from pathlib import Path

import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.principals import Principal
from pyexec.executions.cleanup import Cleanup
from pyexec.executions.retention import ORPHAN_SECONDS
from pyexec.sandbox.claims import claim
from pyexec.storage.descriptors import write_descriptor
from tests.helpers.records import execution
from tests.unit.executions.world import HOUR, OTHER, OWNER, World


def aged(path: Path, seconds: float = ORPHAN_SECONDS + 60) -> Path:
    long_ago = time.time() - seconds
    os.utime(path, (long_ago, long_ago))
    return path


def stray(world: World, name: str, owner: str | None = None) -> Path:
    folder = world.folder.execution(name * 32)
    folder.mkdir()
    (folder / "stdout").write_bytes(b"x" * 50)
    if owner is not None:
        write_descriptor(folder, execution(7, owner=owner))
    return aged(folder)


async def clean(world: World, *, max_age_hours: float = 2, dry_run: bool = False) -> dict[str, tuple[int, int]]:
    cleanup = Cleanup(world.folder, world.retention(), world.autosaved)
    removals = await cleanup.clean(OWNER, max_age_hours=max_age_hours, dry_run=dry_run)
    return {one.kind: (one.count, one.size) for one in removals if one.count or one.kind != "autosaved_scripts"}


async def test_a_dry_run_says_what_would_go_and_then_it_goes(world: World) -> None:
    kept = [world.add("running"), world.add(hours_ago=1), world.add(hours_ago=5, owner=OTHER)]
    old = world.add(hours_ago=5, size=100)
    orphan, half = stray(world, "a"), aged(_file(world.folder.root / ".interpreters.json.123", 20))
    part = aged(_file(world.folder.execution(kept[1].id) / "started.json.part", 30))
    expected = {"jobs": (1, 100), "temporary_files": (3, 100)}

    assert await clean(world, dry_run=True) == expected
    assert all(path.exists() for path in (world.folder.execution(old.id), orphan, half, part))
    assert await clean(world) == expected
    assert not any(path.exists() for path in (orphan, half, part))
    assert world.left() == kept
    assert await clean(world) == {"jobs": (0, 0), "temporary_files": (0, 0)}


async def test_what_is_fresh_guarded_or_somebody_elses_is_never_touched(world: World) -> None:
    fresh = world.folder.execution("b" * 32)
    fresh.mkdir()
    theirs, mine = stray(world, "c", OTHER.key), stray(world, "d", OWNER.key)
    guarded = stray(world, "e")
    held = claim(guarded, world.folder.queue(OWNER.key), "e" * 32)
    aged(guarded)
    running = world.add("running")
    reserved = aged(_file(world.folder.execution(running.id) / "outcome.json.part", 9))
    names = [aged(_file(world.folder.root / name, 9)) for name in ("pyexec.db.1", ".hidden", "notes")]

    assert (await clean(world, max_age_hours=0))["temporary_files"][0] == 1
    assert not mine.exists()
    assert all(path.exists() for path in (fresh, theirs, guarded, reserved, *names))
    held.release()


async def test_places_in_line_without_a_keeper_are_given_up_and_others_are_not(world: World) -> None:
    queue = world.folder.queue(OWNER.key)
    first, second = stray(world, "a"), stray(world, "b")
    held, dead = (claim(folder, queue, folder.name) for folder in (first, second))
    dead.release()
    (world.folder.queue(OTHER.key)).mkdir(parents=True)
    theirs = _file(world.folder.queue(OTHER.key) / "1-x", 0)

    assert (await clean(world))["temporary_files"] == (1, 0)
    assert sorted(os.listdir(queue)) == [".order", held.entry]
    assert theirs.exists()
    held.release()


async def test_autosaved_sources_go_by_owner_and_age(world: World) -> None:
    other = Principal(issuer="https://idp.example", subject="b")
    for owner, source in ((OWNER, b"old"), (other, b"theirs")):
        world.autosaved.keep(owner.key, source, {"job_id": "x"})
        for path in world.folder.autosaved_scripts(owner.key).iterdir():
            aged(path, 5 * HOUR)
    world.autosaved.keep(OWNER.key, b"new", {"job_id": "y"})
    assert (await clean(world, dry_run=True))["autosaved_scripts"][0] == 1
    assert (await clean(world))["autosaved_scripts"][0] == 1
    assert [one.docstring for one in await world.autosaved.entries(OWNER, 10)] == [None]
    assert len(await world.autosaved.entries(other, 10)) == 1


@pytest.mark.parametrize("hours", [-1, float("nan"), 10**7])
async def test_an_age_that_makes_no_sense_is_refused(world: World, hours: float) -> None:
    kept = world.add()
    with pytest.raises(InvalidArgumentError, match="max_age_hours is"):
        await clean(world, max_age_hours=hours)
    assert world.left() == [kept]


def _file(path: Path, size: int) -> Path:
    path.write_bytes(b"x" * size)
    return path
