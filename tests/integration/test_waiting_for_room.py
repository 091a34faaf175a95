"""Where there is no room for one more sandbox, executions wait in line: one owner after the other."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pyexec.domain.executions import Execution, ExecutionRequest, Harness
from pyexec.domain.principals import Principal
from tests.helpers.waiting import eventually
from tests.integration.sandboxes import BUILD_SECONDS, SETTINGS, SandboxEngine

pytestmark = [pytest.mark.needs_uv, pytest.mark.root]

ROOM_FOR_ONE = {
    **SETTINGS,
    "sandbox_ready": 0,
    "sandboxes_memory": 1024 + 256,
    "sandboxes_waiting": 9,
    "concurrent": 6,
}
QUIET = [Principal(issuer="https://issuer.example", subject=f"quiet-{number}") for number in range(3)]
CELL = ExecutionRequest(script_content="1", harness=Harness(guest=True), sandboxed=True, timeout_seconds=60)
FOR_ROOM = "queued: waits for room for one more sandbox, "


@pytest.fixture(scope="module")
def engine(module_home: Path, kept_environments: None) -> Iterator[SandboxEngine]:
    with SandboxEngine(module_home, **ROOM_FOR_ONE) as made:
        yield made


@pytest.fixture
async def taken(engine: SandboxEngine) -> AsyncIterator[Execution]:
    """All room is taken until this execution ends."""
    execution, _pid = await engine.begin_one()
    yield execution
    await engine.stop(execution, "kill")


async def in_line(engine: SandboxEngine, execution: Execution, where: str = "") -> str:
    """Return what an execution is said to wait for, once it stands in line."""

    async def said() -> str | None:
        told = await engine.executions.preparing(execution)
        return told if told is not None and told.startswith(f"queued: waits for {where}") else None

    return await eventually(said, what="an execution that waits") or ""


async def begun(engine: SandboxEngine, principal: Principal, execution: Execution) -> float:
    ended = await engine.executions.wait(principal, execution.id, BUILD_SECONDS)
    assert ended.state == "completed", ended.outcome
    assert ended.started_at is not None
    return ended.started_at


async def test_owners_take_turns_and_everybody_is_told_how_many_are_before_them(
    engine: SandboxEngine, taken: Execution
) -> None:
    noisy = [await engine.submit("1") for _ in range(7)]
    for one in noisy:
        await in_line(engine, one)
    said = [await engine.executions.preparing(one) for one in noisy]
    assert said[:5] == [FOR_ROOM + text for text in ("it is the next", *(f"{n} before it" for n in range(1, 5)))]
    assert said[5:] == [f"queued: waits for its turn among your executions, {number} before it" for number in (1, 2)]
    quiet = [(one, await engine.executions.submit(one, CELL)) for one in QUIET]
    for _one, execution in quiet:
        await in_line(engine, execution, "room")
    assert await in_line(engine, noisy[0]) == FOR_ROOM + "3 before it"

    await engine.stop(taken, "kill")

    last = max([await begun(engine, principal, execution) for principal, execution in quiet])
    first = min([await begun(engine, engine.principal, execution) for execution in noisy])
    assert last < first


async def test_the_first_turn_of_a_session_waits_as_well_and_its_files_can_be_reached_meanwhile(
    engine: SandboxEngine, taken: Execution
) -> None:
    turn = await engine.submit("x = 5; open('kept').read()", session_id="waits")
    second = await engine.submit("x", session_id="waits")
    await in_line(engine, turn, "room")
    assert "its turn in the session, 1 before it" in await in_line(engine, second)
    await engine.services.files.write(engine.principal, "waits", "kept", "text", encoding="text", manner="create")

    await engine.stop(taken, "kill")

    values = [await engine.executions.turn_of(await engine.wait(one, BUILD_SECONDS)) for one in (turn, second)]
    assert [value and value.value for value in values] == ["'text'", "5"]
    await engine.sessions.close(engine.principal, "waits")


async def test_one_that_waits_can_be_cancelled_and_never_begins(engine: SandboxEngine, taken: Execution) -> None:
    first, second = [await engine.submit("1") for _ in range(2)]
    await in_line(engine, second, "room")
    ended = await engine.stop(first, "cancel", "Not needed.")
    assert (ended.state, ended.started_at, ended.outcome and ended.outcome.reason) == ("cancelled", None, "Not needed.")
    assert await in_line(engine, second) == FOR_ROOM + "it is the next"
    await engine.stop(taken, "kill")
    assert await begun(engine, engine.principal, second)


async def test_a_session_that_is_closed_while_it_waits_is_told_as_closed(
    engine: SandboxEngine, taken: Execution
) -> None:
    turn = await engine.submit("1", session_id="closed")
    await in_line(engine, turn, "room")
    await engine.sessions.close(engine.principal, "closed")
    await engine.stop(taken, "kill")
    ended = await engine.wait(turn, BUILD_SECONDS)
    assert (ended.outcome and ended.outcome.reason) == "The session was closed while it waited for room."


async def test_one_that_waits_outlives_its_server(module_home: Path, engine: SandboxEngine, taken: Execution) -> None:
    with SandboxEngine(module_home, **ROOM_FOR_ONE) as other:
        execution = await other.submit("1")
        await in_line(other, execution, "room")
    assert await in_line(engine, execution) == FOR_ROOM + "it is the next"
    await engine.stop(taken, "kill")
    assert await begun(engine, engine.principal, execution)


async def test_a_full_line_refuses_in_a_sentence(engine: SandboxEngine, taken: Execution) -> None:
    waiting = [(one, await engine.executions.submit(one, CELL)) for one in QUIET for _ in range(3)]
    for _one, execution in waiting:
        await in_line(engine, execution, "room")
    refused = await engine.run("1")
    assert refused.outcome is not None
    assert refused.outcome.kind == "start_failed"
    assert "9 executions wait for one already; at most 9 may." in (refused.outcome.reason or "")
    for principal, execution in waiting:
        await engine.executions.stop(principal, execution.id, "kill", "")
