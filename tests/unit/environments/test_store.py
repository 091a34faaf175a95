import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import DiskFullError
from pyexec.environments.store import (
    GRACE_SECONDS,
    MARKER,
    Environment,
    EnvironmentStore,
    Resolution,
    is_digest,
)
from tests.unit.environments.holding import holding

ONE, OTHER = "1" * 32, "2" * 32
LOCK = "rich==15.0.0\n"
LONG_AGO = 2 * GRACE_SECONDS


class World:
    """A store, and executions that use it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = EnvironmentStore(root / "environments")
        self.store.create()
        self.python = root / "python3"
        self.python.touch()

    def half(self, digest: str = ONE) -> Path:
        """Make an environment that is not marked ready yet."""
        folder = self.store.folder(digest)
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").symlink_to(self.python)
        return folder

    def make(self, digest: str = ONE, **values: Any) -> Environment:
        given: dict[str, Any] = {
            "python": self.half(digest) / "bin" / "python",
            "python_version": "3.11.7",
            "packages": ("rich==15.0.0",),
            "size_bytes": 5,
            "created_at": 7.0,
        }
        environment = Environment(digest=digest, **(given | values))
        self.store.mark_ready(environment, LOCK)
        return environment

    def lock_of(self, holder: str) -> Path:
        return self.root / "executions" / holder / "lock"

    def lease(self, holder: str, digest: str = ONE) -> Environment | None:
        return self.store.lease(digest, holder, self.lock_of(holder))

    def age(self, seconds: float, digest: str = ONE) -> None:
        """Make every lease of an environment so much older."""
        at = time.time() - seconds
        folder = self.store.root / "leases" / digest
        for path in (*folder.iterdir(), folder):
            os.utime(path, (at, at))

    def left(self) -> list[str]:
        """Return what lies in the store, but for what is remembered of requests."""
        leases = os.listdir(self.store.root / "leases")
        found = [name for name in os.listdir(self.store.root) if name not in ("requests", "leases")]
        return sorted(found + [f"leases/{name}" for name in leases])


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_store_is_for_its_owners_eyes_only(world: World) -> None:
    world.store.create()
    for folder in (world.store.root, world.store.root / "requests", world.store.root / "leases"):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("0123456789abcdef" * 2, True), ("A" * 32, False), ("1" * 31, False), ("leases", False), ("1" * 32 + ".", False)],
)
def test_the_name_of_an_environment_is_told_from_others(name: str, *, is_one: bool) -> None:
    assert is_digest(name) is is_one


# -- what a request resolved to ------------------------------------------------------------------------------------


def test_what_a_request_resolved_to_is_remembered_with_its_lock(world: World) -> None:
    resolution = Resolution(digest=ONE, created_at=5.5, put_off_until=7, notes=("The index was slow.",))
    world.store.keep_resolution("key", resolution, LOCK)
    again = EnvironmentStore(world.store.root)
    assert again.resolution("key") == resolution
    assert again.lock_text(ONE) == LOCK
    assert again.resolution("other") is None
    assert again.lock_text(OTHER) is None


def test_a_resolution_is_fresh_for_so_long_or_until_it_was_put_off() -> None:
    now = time.time()
    assert Resolution(digest=ONE, created_at=now - 50).is_fresh(100)
    assert not Resolution(digest=ONE, created_at=now - 150).is_fresh(100)
    assert Resolution(digest=ONE, created_at=now - 150, put_off_until=now + 60).is_fresh(100)
    assert not Resolution(digest=ONE, created_at=now, put_off_until=now - 1).is_fresh(0)


def test_a_later_resolution_takes_the_place_of_an_earlier_one(world: World) -> None:
    for digest in (ONE, OTHER):
        world.store.keep_resolution("key", Resolution(digest=digest, created_at=1), digest)
    assert world.store.resolution("key") == Resolution(digest=OTHER, created_at=1)
    assert world.store.lock_text(ONE) == ONE


KEPT = {"format": 1, "digest": ONE, "created_at": 1.0, "local": [], "put_off_until": 0.0, "notes": []}


@pytest.mark.parametrize("content", ["", '{"format": 1, "digest', "[]", "null", "[" * 100_000, "\ufeff{}", "{}"])
def test_a_damaged_resolution_is_as_good_as_none(world: World, content: str) -> None:
    (world.store.root / "requests" / "key.json").write_text(content, encoding="utf-8")
    assert world.store.resolution("key") is None


@pytest.mark.parametrize("field", KEPT)
def test_a_resolution_that_lacks_something_is_as_good_as_none(world: World, field: str) -> None:
    file = world.store.root / "requests" / "key.json"
    file.write_text(json.dumps(KEPT))
    assert world.store.resolution("key") == Resolution(digest=ONE, created_at=1)
    bad = [{**KEPT, field: value} for value in ({"a": 1}, "../../x")]
    for changed in (*bad, {name: value for name, value in KEPT.items() if name != field}):
        file.write_text(json.dumps(changed))
        assert world.store.resolution("key") is None


def test_old_resolutions_are_forgotten_but_no_lock_that_is_held(world: World) -> None:
    requests = world.store.root / "requests"
    world.store.keep_resolution("new", Resolution(digest=ONE, created_at=1), LOCK)
    world.store.keep_resolution("old", Resolution(digest=OTHER, created_at=1), LOCK)
    for name in ("old.lock", "held.lock", "new.lock"):
        (requests / name).touch()
    for name in ("old.json", f"{OTHER}.lock-text", "old.lock", "held.lock"):
        os.utime(requests / name, (50, 50))
    with holding(world.store.request_lock("held")):
        world.store.forget_old_resolutions(100)
    assert sorted(os.listdir(requests)) == sorted(["new.json", f"{ONE}.lock-text", "held.lock", "new.lock"])


# -- environments --------------------------------------------------------------------------------------------------


def test_an_environment_is_found_once_it_is_marked_ready(world: World) -> None:
    assert world.store.get(ONE) is None
    made = world.make()
    assert world.store.get(ONE) == made
    assert world.store.lock_text(ONE) == LOCK
    assert world.store.digests() == [ONE]


def test_a_folder_that_was_cut_off_is_not_found_but_listed(world: World) -> None:
    world.half()
    assert world.store.get(ONE) is None
    assert world.lease("a") is None
    assert world.store.digests() == [ONE]


def test_an_environment_whose_interpreter_was_removed_is_not_found(world: World) -> None:
    world.make()
    world.python.unlink()
    assert world.store.get(ONE) is None


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "{}"])
def test_a_damaged_mark_is_as_good_as_none(world: World, content: str) -> None:
    (world.make().python.parent.parent / MARKER).write_text(content)
    assert world.store.get(ONE) is None


@pytest.mark.parametrize("field", ["format", "python_version", "packages", "size_bytes", "created_at"])
def test_a_mark_that_lacks_something_is_as_good_as_none(world: World, field: str) -> None:
    marker = world.make().python.parent.parent / MARKER
    values = json.loads(marker.read_text())
    for changed in ({**values, field: {"a": 1}}, {name: value for name, value in values.items() if name != field}):
        marker.write_text(json.dumps(changed))
        assert world.store.get(ONE) is None


def test_marking_leaves_no_half_written_files_behind(world: World) -> None:
    folder = world.make().python.parent.parent
    assert sorted(os.listdir(folder)) == ["bin", "environment.json", "requirements.lock"]


# -- leases --------------------------------------------------------------------------------------------------------


def test_an_environment_is_in_use_as_long_as_the_lock_of_who_leased_it_is_held(world: World) -> None:
    made = world.make()
    with holding(world.lock_of("a")), holding(world.lock_of("b")):
        assert world.lease("a") == world.lease("b") == made
        assert sorted(world.store.holders(ONE)) == ["a", "b"]
    assert world.store.holders(ONE) == []


def test_a_lease_tells_when_an_environment_was_last_used(world: World) -> None:
    world.make()
    assert world.store.last_used(ONE) == 0
    before = time.time()
    world.lease("a")
    assert world.store.last_used(ONE) == pytest.approx(before, abs=60)
    world.age(1000)
    world.lease("a")
    assert world.store.last_used(ONE) == pytest.approx(before, abs=60)


def test_an_environment_that_is_just_made_or_evicted_cannot_be_leased(world: World) -> None:
    world.make()
    with holding(world.store.lock_file(ONE)):
        assert world.lease("a") is None
    assert world.store.holders(ONE) == []
    assert world.store.last_used(ONE) == 0


def test_who_leases_does_not_keep_others_from_leasing(world: World) -> None:
    world.make()
    with holding(world.store.lock_file(ONE), fcntl.LOCK_SH):
        assert world.lease("a") is not None


def test_a_lease_that_cannot_be_written_is_said_to_be_the_disks_fault(world: World) -> None:
    world.make()
    (world.store.root / "leases").rmdir()
    (world.store.root / "leases").touch()
    with pytest.raises(DiskFullError, match="No lease could be written"):
        world.lease("a")


def test_leases_of_those_who_have_ended_are_forgotten_and_that_is_no_use(world: World) -> None:
    world.make()
    for holder in ("gone", "here", "young"):
        world.lease(holder)
    world.age(LONG_AGO)
    with holding(world.lock_of("here")):
        world.lease("young")
        world.age(0)
        used = world.store.last_used(ONE)
        world.store.forget_dead_leases(ONE)
        assert len(os.listdir(world.store.root / "leases" / ONE)) == 3
        world.age(LONG_AGO)
        used = world.store.last_used(ONE)
        world.store.forget_dead_leases(ONE)
    assert os.listdir(world.store.root / "leases" / ONE) == ["here"]
    assert world.store.last_used(ONE) == pytest.approx(used, abs=0.001)


def test_a_lease_that_cannot_be_read_is_nobodys(world: World) -> None:
    world.make()
    world.lease("a")
    world.lock_of("a").parent.mkdir(parents=True, exist_ok=True)
    world.lock_of("a").touch()
    (world.store.root / "leases" / ONE / "folder").mkdir()
    (world.store.root / "leases" / ONE / "empty").touch()
    assert world.store.holders(ONE) == []


# -- removing ------------------------------------------------------------------------------------------------------


def test_an_environment_that_nobody_uses_is_evicted_whole(world: World) -> None:
    world.make()
    world.make(OTHER)
    world.lease("a")
    world.age(LONG_AGO)
    assert world.store.evict(ONE)
    assert world.left() == [OTHER]
    assert world.store.get(ONE) is None


@pytest.mark.parametrize("at_once", [False, True])
def test_an_environment_in_use_is_never_evicted(world: World, *, at_once: bool) -> None:
    made = world.make()
    with holding(world.lock_of("a")):
        world.lease("a")
        world.age(LONG_AGO)
        assert not world.store.evict(ONE, at_once=at_once)
        assert world.store.get(ONE) == made
    assert world.store.evict(ONE, at_once=at_once)


@pytest.mark.parametrize("at_once", [False, True])
def test_an_environment_that_is_being_made_is_never_evicted(world: World, *, at_once: bool) -> None:
    folder = world.half()
    with holding(world.store.lock_file(ONE)):
        assert not world.store.evict(ONE, at_once=at_once)
    assert folder.is_dir()
    assert world.store.evict(ONE, at_once=at_once)
    assert world.left() == []


def test_an_environment_that_was_leased_a_moment_ago_is_evicted_only_at_once(world: World) -> None:
    world.make()
    world.lease("a")
    assert not world.store.evict(ONE)
    world.age(GRACE_SECONDS - 10)
    assert not world.store.evict(ONE)
    assert world.store.evict(ONE, at_once=True)


def test_evicting_what_is_gone_already_is_no_failure(world: World) -> None:
    assert world.store.evict(ONE)
    assert world.left() == []
