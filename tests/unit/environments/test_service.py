import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import EnvironmentInUseError, NotFoundError
from pyexec.domain.limits import DAY, EnvironmentLimits
from pyexec.domain.principals import Principal
from pyexec.environments import service
from pyexec.environments.names import NamedEnvironment, NameRegister
from pyexec.environments.service import (
    EnvironmentEntry,
    EnvironmentLock,
    EnvironmentService,
    environment_places,
)
from pyexec.environments.store import Environment, EnvironmentStore, Resolution
from pyexec.environments.sweeping import RESOLUTIONS_KEPT_SECONDS
from tests.unit.environments.holding import holding

OWNER = Principal(issuer="local", subject="1000")
OTHER = Principal(issuer="local", subject="1001")
HOUR = 3600.0


class World:
    """Environments that were used more or less long ago."""

    store: EnvironmentStore
    names: NameRegister

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store, self.names = environment_places(root / "environments")
        self.python = root / "python3"
        self.python.touch()

    def service(self, **limits: Any) -> EnvironmentService:
        return EnvironmentService(self.store, self.names, EnvironmentLimits(**limits))

    def half(self, digest: str) -> str:
        """Make an environment whose making was cut off."""
        folder = self.store.folder(digest) / "bin"
        folder.mkdir(parents=True)
        (folder / "python").symlink_to(self.python)
        return digest

    def make(self, letter: str, *, used: float | None = None, made: float = 0.0, size: int = 10) -> Environment:
        """Make an environment that is as old as that, and was last used so many seconds ago."""
        digest = self.half(letter * 32)
        now = time.time()
        environment = Environment(
            digest=digest,
            python=self.store.folder(digest) / "bin" / "python",
            python_version="3.11.7",
            packages=("rich==15.0.0",),
            size_bytes=size,
            created_at=now - made,
        )
        self.store.mark_ready(environment, f"lock of {letter}\n")
        if used is not None:
            lock = self.lease(digest, "gone")
            lock.parent.mkdir(parents=True, exist_ok=True)
            lock.touch()
            for path in (self.leases(digest) / "gone", self.leases(digest)):
                os.utime(path, (now - used, now - used))
        return environment

    def leases(self, digest: str) -> Path:
        return self.store.root / "leases" / digest

    def lease(self, digest: str, holder: str) -> Path:
        lock = self.root / "executions" / holder / "lock"
        assert self.store.lease(digest, holder, lock) is not None
        return lock

    def name(self, name: str, digest: str, owner: Principal = OWNER) -> None:
        named = NamedEnvironment(
            name=name,
            digest=digest,
            python=str(self.python),
            python_version="3.12.1",
            dependencies=("rich",),
            lock="lock of the name\n",
            created_at=5.0,
        )
        self.names.put(owner.key, named)

    def left(self) -> str:
        """Return the letters of the environments that are left, and check that nothing else is of those that went."""
        found = sorted(self.store.digests())
        leases = set(os.listdir(self.store.root / "leases"))
        locks = {name[:32] for name in os.listdir(self.store.root) if name.endswith(".lock") and name != "sweep.lock"}
        assert leases | locks <= set(found)
        return "".join(digest[0] for digest in found)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# -- listing -------------------------------------------------------------------------------------------------------


async def test_named_environments_are_listed_first_then_the_most_recently_used(world: World) -> None:
    for letter, used in (("a", 3 * HOUR), ("b", HOUR), ("c", None), ("d", 2 * HOUR), ("e", 9 * HOUR)):
        world.make(letter, used=used)
    world.half("f" * 32)
    world.name("web", "e" * 32)
    world.name("data", "d" * 32)
    entries = await world.service().entries(OWNER)
    assert [entry.id[0] for entry in entries] == ["d", "e", "b", "a", "c"]
    assert [entry.names for entry in entries[:3]] == [("data",), ("web",), ()]


async def test_an_entry_says_what_it_is_and_who_uses_it(world: World) -> None:
    made = world.make("a", used=HOUR)
    world.name("web", made.digest)
    world.name("also", made.digest)
    world.name("theirs", made.digest, OTHER)
    with holding(world.lease(made.digest, "b" * 32)):
        assert await world.service().entries(OWNER) == [
            EnvironmentEntry(
                id=made.digest,
                names=("also", "web"),
                python_version="3.11.7",
                environment=made,
                last_used_at=world.store.last_used(made.digest),
                in_use_by=("b" * 32,),
            )
        ]


async def test_a_named_environment_whose_folder_is_gone_is_still_listed_for_its_owner(world: World) -> None:
    world.name("web", "a" * 32)
    (entry,) = await world.service().entries(OWNER)
    assert (entry.environment, entry.python_version, entry.names) == (None, "3.12.1", ("web",))
    assert await world.service().entries(OTHER) == []


async def test_an_environment_is_meant_by_its_name_its_id_or_a_beginning_that_is_its_alone(world: World) -> None:
    world.make("a")
    world.half("abcdef" + "0" * 26)
    world.make("b")
    world.name("web", "a" * 32)
    world.name("aaaaaaa", "b" * 32)
    finder = world.service()
    for text, letter in (("web", "a"), ("a" * 32, "a"), ("a" * 6, "a"), ("aaaaaaa", "b"), ("b" * 31, "b")):
        assert (await finder.require(OWNER, text)).id[0] == letter
    for text in ("", "a", "a" * 5, "gone", "WEB", "abcdef", "x" * 5000, "../x"):
        with pytest.raises(NotFoundError, match="There is no environment"):
            await finder.require(OWNER, text)
    with pytest.raises(NotFoundError):
        await finder.require(OTHER, "web")


async def test_a_beginning_that_two_have_in_common_is_said_to_be_so(world: World) -> None:
    for last in "01":
        digest = "a" * 31 + last
        world.half(digest)
        environment = Environment(digest=digest, python=world.python, python_version="3.11.7", packages=())
        world.store.mark_ready(environment, "")
    with pytest.raises(NotFoundError, match="2 environments begin with 'aaaaaa'"):
        await world.service().require(OWNER, "aaaaaa")


# -- locking -------------------------------------------------------------------------------------------------------


async def test_the_lock_is_that_of_the_environment_or_else_what_its_name_remembers(world: World) -> None:
    made = world.make("a")
    world.name("web", "a" * 32)
    locker = world.service()
    assert await locker.lock(OWNER, "web") == EnvironmentLock(
        id=made.digest, python_version="3.11.7", text="lock of a\n"
    )
    assert world.store.evict(made.digest)
    assert await locker.lock(OWNER, "web") == EnvironmentLock(
        id=made.digest, python_version="3.12.1", text="lock of the name\n"
    )


# -- removing ------------------------------------------------------------------------------------------------------


async def test_an_environment_goes_with_the_last_of_its_names_however_lately_it_was_used(world: World) -> None:
    made = world.make("a", used=0)
    world.make("b")
    for name, owner in (("web", OWNER), ("also", OWNER), ("theirs", OTHER)):
        world.name(name, made.digest, owner)
    removed = await world.service().remove(OWNER, "web")
    assert (removed.id, removed.names) == (made.digest, ("web",))
    assert [named.name for named in world.names.all_of(OWNER.key)] == ["also"]
    await world.service().remove(OWNER, made.digest)
    assert [named.name for named in world.names.all_of(OTHER.key)] == ["theirs"]
    assert world.left() == "ab", "somebody else has a name for it"
    await world.service().remove(OTHER, "theirs")
    assert world.left() == "b"


async def test_a_name_whose_environment_is_gone_can_be_removed(world: World) -> None:
    world.name("web", "a" * 32)
    await world.service().remove(OWNER, "web")
    assert world.names.all_of(OWNER.key) == []


async def test_an_environment_in_use_is_not_removed_and_the_refusal_says_by_whom(world: World) -> None:
    made = world.make("a")
    world.name("web", made.digest)
    with holding(world.lease(made.digest, "1" * 32)):
        with pytest.raises(EnvironmentInUseError, match=f"web is in use by 1 execution: {'1' * 32}"):
            await world.service().remove(OWNER, made.digest)
        with (
            holding(world.lease(made.digest, "2" * 32)),
            pytest.raises(EnvironmentInUseError, match="by 2 executions: "),
        ):
            await world.service().remove(OWNER, "web")
    assert world.left() == "a"
    assert len(world.names.all_of(OWNER.key)) == 1


async def test_an_environment_that_is_just_being_made_keeps_its_name(world: World) -> None:
    world.name("web", "a" * 32)
    folder = world.store.folder(world.half("a" * 32))
    with (
        holding(world.store.lock_file("a" * 32)),
        pytest.raises(EnvironmentInUseError, match="web is being made, or was taken into use just now"),
    ):
        await world.service().remove(OWNER, "web")
    assert folder.is_dir()
    assert len(world.names.all_of(OWNER.key)) == 1


# -- sweeping ------------------------------------------------------------------------------------------------------


def test_a_sweep_removes_what_nobody_has_used_for_long(world: World) -> None:
    world.make("a", made=9 * DAY, used=3 * DAY)
    world.make("b", made=9 * DAY, used=DAY)
    world.make("c", made=9 * DAY)
    world.make("d", made=DAY)
    assert world.service(environments_age=2 * DAY).sweep() == 2
    assert world.left() == "bd"


def test_a_sweep_makes_room_by_removing_what_was_not_used_for_the_longest_time(world: World) -> None:
    world.make("a", made=9 * DAY, used=HOUR, size=40)
    world.make("b", made=DAY, size=40)
    world.make("c", made=9 * DAY, used=5 * HOUR, size=40)
    world.make("d", made=9 * DAY, used=2 * DAY, size=40)
    assert world.service(environments_size=160).sweep() == 0
    assert world.service(environments_size=100).sweep() == 2
    assert world.left() == "ac"


def test_a_sweep_removes_no_more_than_it_must(world: World) -> None:
    world.make("a", made=3 * DAY, size=70)
    world.make("b", made=2 * DAY, size=10)
    world.make("c", made=1 * DAY, size=30)
    assert world.service(environments_size=40).sweep() == 1
    assert world.left() == "bc"


def test_what_has_a_name_stays_whoever_gave_it(world: World) -> None:
    world.make("a", made=99 * DAY, size=100)
    world.make("b", made=99 * DAY, size=100)
    world.make("c", made=HOUR, size=100)
    world.name("web", "a" * 32)
    world.name("web", "b" * 32, OTHER)
    assert world.service(environments_age=DAY, environments_size=1).sweep() == 1
    assert world.left() == "ab"


def test_what_is_in_use_stays_and_something_else_makes_room(world: World) -> None:
    world.make("a", made=99 * DAY, used=99 * DAY, size=100)
    world.make("b", made=3 * HOUR, size=100)
    world.make("c", made=2 * HOUR, used=HOUR, size=100)
    with holding(world.root / "executions" / "gone" / "lock"):
        assert world.service(environments_age=DAY, environments_size=150).sweep() == 1
        assert world.left() == "ac"
    assert world.service(environments_age=DAY).sweep() == 1
    assert world.left() == "c"


def test_what_was_taken_into_use_a_moment_ago_stays(world: World) -> None:
    world.make("a", made=99 * DAY, used=5, size=100)
    assert world.service(environments_age=0, environments_size=1).sweep() == 0
    assert world.left() == "a"


def test_what_was_left_half_made_goes_and_what_is_being_made_stays(world: World) -> None:
    world.half("a" * 32)
    world.half("b" * 32)
    with holding(world.store.lock_file("b" * 32)):
        assert world.service().sweep() == 1
        assert world.left() == "b"
    assert world.service().sweep() == 1
    assert world.left() == ""


def test_an_environment_whose_interpreter_is_gone_goes_though_it_has_a_name(world: World) -> None:
    world.make("a", used=DAY)
    world.name("web", "a" * 32)
    world.python.unlink()
    assert world.service().sweep() == 1
    assert world.left() == ""
    assert len(world.names.all_of(OWNER.key)) == 1


def test_a_sweep_forgets_leases_of_those_who_have_ended_and_what_was_resolved_long_ago(world: World) -> None:
    made = world.make("a", used=DAY)
    requests = world.store.root / "requests"
    for key, age in (("new", 0), ("old", RESOLUTIONS_KEPT_SECONDS + 60)):
        world.store.keep_resolution(key, Resolution(digest=made.digest, created_at=0), "")
        os.utime(requests / f"{key}.json", (time.time() - age, time.time() - age))
    used = world.store.last_used(made.digest)
    assert world.service().sweep() == 0
    assert os.listdir(world.leases(made.digest)) == []
    assert world.store.last_used(made.digest) == pytest.approx(used, abs=0.001)
    assert sorted(os.listdir(requests)) == [f"{made.digest}.lock-text", "new.json"]


def test_one_server_sweeps_at_a_time(world: World) -> None:
    world.half("a" * 32)
    with holding(world.store.root / "sweep.lock"):
        assert world.service().sweep() == 0
    assert world.service().sweep() == 1


def test_what_does_not_belong_to_the_store_is_left_alone(world: World) -> None:
    (world.store.root / "mine").mkdir()
    (world.store.root / ("A" * 32)).mkdir()
    assert world.service(environments_age=0, environments_size=1).sweep() == 0
    assert (world.store.root / "mine").is_dir()


async def test_a_server_sweeps_again_and_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise StopAsyncIteration
        world.half(str(len(slept)) * 32)

    monkeypatch.setattr("anyio.sleep", sleep)
    with pytest.raises(StopAsyncIteration):
        await world.service().sweep_forever()
    assert slept == [service.FIRST_SWEEP_SECONDS, service.SWEEP_SECONDS, service.SWEEP_SECONDS]
    assert world.left() == ""


def test_the_places_of_environments_lie_in_one_folder(tmp_path: Path) -> None:
    store, names = environment_places(tmp_path / "deep" / "environments")
    assert store.root == tmp_path / "deep" / "environments"
    names.put("x", replace(_any_named(), digest="a" * 32))
    assert {"requests", "leases", "named"} <= set(os.listdir(store.root))


def _any_named() -> NamedEnvironment:
    return NamedEnvironment(name="x", digest="", python="", python_version="", dependencies=(), lock="", created_at=0.0)
