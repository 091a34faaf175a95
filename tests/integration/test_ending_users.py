"""`pyexec users end` tells what was seen to end, and what was not."""

import json
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from anyio.to_thread import run_sync

from pyexec.domain.errors import StateUnusableError
from pyexec.domain.executions import Execution
from pyexec.storage.state_folder import StateFolder
from tests.helpers.commands import Command, Ran
from tests.integration.engine import Engine

FOREVER = "import time\nwhile True: time.sleep(1)"


@contextmanager
def hanging(engine: Engine, execution: Execution) -> Generator[None]:
    """Have its keeper do nothing meanwhile, though it is there."""
    keeper = engine.keeper(execution)
    os.kill(keeper, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(keeper, signal.SIGCONT)


async def end_of(engine: Engine, *words: str) -> Ran:
    who = (engine.principal.subject, "--issuer", engine.principal.issuer)
    return await run_sync(lambda: Command(engine.home, engine.directory)("users", "end", *who, *words))


async def test_what_could_not_be_ended_is_told_with_a_status_and_ends_when_it_is_asked_again(engine: Engine) -> None:
    stuck, other = [await engine.submit(FOREVER) for _ in range(2)]
    with hanging(engine, stuck):
        ran = await end_of(engine, "--wait", "0.5", "--json")
    told = json.loads(ran.stdout)
    assert (ran.status, told["complete"], told["jobs_left"]) == (1, False, [stuck.id])
    assert told["executions"] == 1
    assert (await engine.get(other)).state == "cancelled"

    again = json.loads((await end_of(engine, "--json")).stdout)
    assert (again["complete"], again["jobs_left"]) == (True, [])
    assert (await engine.get(stuck)).state == "cancelled"
    assert again["ended_at"] > told["ended_at"]


async def test_people_are_told_what_is_left_and_when_newer_tokens_count(engine: Engine) -> None:
    stuck = await engine.submit(FOREVER)
    with hanging(engine, stuck):
        ran = await end_of(engine, "--wait", "0.5")
    assert ran.status == 1
    assert f"error: 1 jobs could not be ended: {stuck.id}" in ran.stderr
    assert "Run it again." in ran.stderr
    assert "signs in after that is let in again" in ran.stdout
    listed = await run_sync(lambda: Command(engine.home, engine.directory).ok("users", "ended", "--json"))
    (one,) = json.loads(listed)["users"]
    assert (one["issuer"], one["subject"]) == (engine.principal.issuer, engine.principal.subject)
    assert one["newer_tokens_count_after"] - one["ended_at"] == 30


async def test_nothing_is_ended_where_it_cannot_be_noted(engine: Engine) -> None:
    execution = await engine.submit(FOREVER)
    StateFolder(engine.home).ended_users.write_text("no folder")
    with pytest.raises(StateUnusableError, match="Nothing was ended"):
        await engine.services.users.end(engine.principal)
    assert not (await engine.get(execution)).ended
    await engine.stop(execution, "kill")
