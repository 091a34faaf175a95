"""How long environments are kept: never removed while in use, else by age and size; names keep them."""

import os
import shutil
import time

import pytest

from pyexec.domain.errors import EnvironmentInUseError, NotFoundError
from pyexec.domain.executions import Execution
from pyexec.environments.store import GRACE_SECONDS
from tests.integration.conftest import MakeUvEngine
from tests.integration.environments import SHOW, UvEngine, make_wheel

pytestmark = pytest.mark.needs_uv

WAITING = (
    "import os, iniconfig\n"
    "print('up', flush=True)\n"
    "os.read(os.open('fifo', os.O_RDONLY), 1)\n"
    "import iniconfig.exceptions\n"
    "print('done')\n"
)


@pytest.fixture
def uv_engine(make_uv_engine: MakeUvEngine) -> UvEngine:
    """An engine on a state folder of its own."""
    return make_uv_engine()


async def start(engine: UvEngine, **request: object) -> Execution:
    """Start a program that uses an environment until `let_go`."""
    if not (engine.directory / "fifo").exists():
        os.mkfifo(engine.directory / "fifo")
    given = {"dependencies": ["iniconfig"], **request}
    execution = await engine.submit(WAITING, **given)
    engine.printed(execution)
    return execution


async def let_go(engine: UvEngine, execution: Execution) -> None:
    (engine.directory / "fifo").write_bytes(b"x")
    assert (await engine.wait(execution)).state == "completed"
    assert await engine.stdout(execution) == "up\ndone\n"


def age(engine: UvEngine) -> None:
    """Have all that was used be used longer ago than what counts as just now."""
    then = time.time() - GRACE_SECONDS - 60
    for path in (engine.home / "environments" / "leases").rglob("*"):
        os.utime(path, (then, then))


@pytest.mark.parametrize("limits", [{"environments_days": 0}, {"environments_mb": 1}], ids=["age", "size"])
async def test_an_environment_is_not_evicted_while_somebody_uses_it_and_is_afterwards(
    make_uv_engine: MakeUvEngine, limits: dict[str, int]
) -> None:
    other = make_uv_engine(**limits)
    user = UvEngine(other.home)
    large = make_wheel(user.directory, "large", "1", {"large.bin": bytes(2 * 1024 * 1024)})
    execution = await start(user, dependencies=["iniconfig", f"./{large.name}"])
    user.close()  # What it has started goes on.
    age(other)

    assert other.services.environments.sweep() == 0
    assert len(other.complete()) == 1
    await let_go(other, execution)
    assert (await other.run("", dependencies=["iniconfig", f"./{large.name}"])).state == "completed"

    assert other.services.environments.sweep() == 0  # It was used a moment ago.
    age(other)
    assert other.services.environments.sweep() == 1
    assert other.folders() == []
    assert list((other.home / "environments" / "leases").iterdir()) == []


@pytest.mark.exhaustive
async def test_what_was_not_used_for_the_longest_time_goes_first(make_uv_engine: MakeUvEngine) -> None:
    engine = make_uv_engine(environments_mb=3)
    for name in ("one", "two"):
        make_wheel(engine.directory, name, "1", {f"{name}.bin": bytes(2 * 1024 * 1024)})
        await engine.run("", dependencies=[f"./{name}-1-py3-none-any.whl"])
    age(engine)
    used = await engine.run("", dependencies=["./one-1-py3-none-any.whl"])
    assert engine.prepared(used) == []

    assert engine.services.environments.sweep() == 1

    assert engine.complete() == [(await engine.answer(used)).digest]


async def test_one_in_use_cannot_be_removed_and_then_it_can(uv_engine: UvEngine) -> None:
    execution = await start(uv_engine)
    (entry,) = await uv_engine.services.environments.entries(uv_engine.principal)
    assert entry.in_use_by == (execution.id,)

    with pytest.raises(EnvironmentInUseError) as refusal:
        await uv_engine.services.environments.remove(uv_engine.principal, entry.id)

    assert execution.id in refusal.value.message
    await let_go(uv_engine, execution)
    removed = await uv_engine.services.environments.remove(uv_engine.principal, entry.id[:6])
    assert (removed.id, uv_engine.folders()) == (entry.id, [])
    with pytest.raises(NotFoundError):
        await uv_engine.services.environments.remove(uv_engine.principal, entry.id)


async def test_a_named_one_is_kept_and_made_again_from_its_lock_when_its_folder_is_gone(
    make_uv_engine: MakeUvEngine,
) -> None:
    engine = make_uv_engine(environments_days=0, environments_mb=1)
    first = await engine.run("", dependencies=["iniconfig<2.1"], constraints=["iniconfig<2"], keep_as="tools")
    (digest,) = engine.complete()
    age(engine)
    assert engine.services.environments.sweep() == 0
    await engine.run("", dependencies=["iniconfig<2.1"])  # A newer one, for others.

    shutil.rmtree(engine.store.folder(digest))
    shutil.rmtree(engine.home / "environments" / "requests")
    again = await engine.run(SHOW, environment="tools", args=["iniconfig"])
    warm = await engine.run(SHOW, environment="tools", args=["iniconfig"])

    assert await engine.stdout(again) == await engine.stdout(warm) == "iniconfig=1.1.1\n"
    assert "installing 1 package" in engine.prepared(again)
    assert engine.prepared(warm) == []
    digests = {(await engine.answer(one)).digest for one in (first, again, warm)}
    assert digests == {digest}


@pytest.mark.exhaustive
async def test_a_name_is_seen_by_every_server_and_can_be_taken_back(make_uv_engine: MakeUvEngine) -> None:
    one, other = make_uv_engine(), make_uv_engine()
    for version in ("2.0.0", "1.1.1"):  # Given again, it means the new one.
        await one.run("", dependencies=[f"iniconfig=={version}"], keep_as="tools")
        assert await other.printed_by(SHOW, environment="tools", args=["iniconfig"]) == f"iniconfig={version}"
    named = [entry for entry in await one.services.environments.entries(one.principal) if entry.names]
    assert [entry.environment.packages for entry in named if entry.environment] == [("iniconfig==1.1.1",)]
    await other.services.environments.remove(other.principal, "tools")

    assert len(one.folders()) == 1
    with pytest.raises(NotFoundError) as refusal:
        await one.submit(SHOW, environment="tools")
    assert refusal.value.message == "There is no environment 'tools'; there are: none."
