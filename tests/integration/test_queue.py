"""At most so many at once, in the order of submission."""

import os
import time
from collections.abc import Callable
from itertools import pairwise

import anyio
import pytest

from pyexec.domain.errors import QueueFullError
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from tests.helpers.processes import alive, eventually
from tests.helpers.waiting import eventually as soon
from tests.helpers.waiting import with_enough_time
from tests.integration.engine import WAIT_SECONDS, Engine, gone, outcome_of

MakeEngine = Callable[..., Engine]
UP = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def spans_of(executions: list[Execution]) -> list[tuple[float, float]]:
    """When each began and ended, in the order of submission."""
    spans: list[tuple[float, float]] = []
    for execution in executions:
        outcome = outcome_of(execution)
        assert outcome.started_at is not None
        spans.append((outcome.started_at, outcome.ended_at))
    return spans


def require_line(spans: list[tuple[float, float]], slots: int) -> None:
    """Check that nobody began before enough of those before them had ended."""
    for number, (began, _ended) in enumerate(spans):
        before = [ended for _began, ended in spans[:number] if ended > began]
        assert len(before) < slots, f"number {number} began while {len(before)} before it ran or waited"


async def test_never_more_than_allowed_run_at_once_and_they_begin_in_order(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=3)
    submitted = [await engine.submit("import time; time.sleep(0.05)") for _ in range(24)]

    ended = [await engine.wait(execution) for execution in submitted]

    assert {execution.state for execution in ended} == {"completed"}
    require_line(spans_of(ended), 3)


async def test_servers_beside_each_other_share_one_line(make_engine: MakeEngine) -> None:
    engines = [make_engine(concurrent=2) for _ in range(2)]
    submitted = [await engines[number % 2].submit("pass") for number in range(10)]

    ended = [await engines[0].wait(execution) for execution in submitted]

    require_line(spans_of(ended), 2)


async def test_each_user_has_a_line_of_their_own(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=1)
    first = await engine.submit(UP)
    others = [await engine.submit("pass") for _ in range(40)]
    await soon(lambda: engine.stdout(first))

    for number in range(4):
        user = Principal(issuer="test", subject=f"{number}")
        mine = await engine.executions.submit(user, ExecutionRequest(script_content="pass", use_uv=False))
        ended = await engine.executions.wait(user, mine.id, WAIT_SECONDS)
        assert ended.state == "completed"

    assert {(await engine.get(one)).state for one in others} == {"pending"}
    for one in reversed(others):
        await engine.stop(one, "kill")
    await engine.stop(first, "kill")


async def test_the_next_in_line_starts_as_soon_as_a_place_is_free(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=1)

    async def longest() -> float:
        submitted = [await engine.submit("pass") for _ in range(4)]
        spans = spans_of([await engine.wait(execution) for execution in submitted])
        return max(following[0] - ended for (_began, ended), following in pairwise(spans))

    async def at_once() -> bool:
        return await longest() < 0.5  # Whoever only looked now and then would be late for one of the three.

    await soon(at_once, what="three places in a row that are taken at once")


async def test_what_waits_is_pending_and_has_no_output(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=1)
    first, second = await engine.submit(UP), await engine.submit("print('second')")
    engine.printed(first)

    pending = await engine.get(second)
    assert (pending.state, pending.started_at, pending.pid) == ("pending", None, None)
    assert await engine.stdout(pending) == ""
    assert (await engine.get(first)).state == "running"

    await engine.stop(first, "kill")
    assert await engine.stdout(await engine.wait(second)) == "second\n"


async def test_a_pending_execution_can_be_cancelled_and_never_begins(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=1)
    first = await engine.submit(UP)
    engine.printed(first)
    second = await engine.submit("open('second-ran', 'w')")
    third = await engine.submit("print('third')")

    second = await engine.stop(second, "cancel", "Not needed.")

    outcome = outcome_of(second)
    assert (second.state, outcome.reason, outcome.exit_code) == ("cancelled", "Not needed.", None)
    assert (outcome.started_at, outcome.stopped_by) == (None, None)
    assert (await engine.get(third)).state == "pending"
    await engine.stop(first, "kill")
    assert (await engine.wait(third)).state == "completed"
    assert not (engine.directory / "second-ran").exists()


async def test_time_in_line_does_not_count_as_time_that_it_ran(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=1)

    async def ask(seconds: float) -> Execution:
        first = await engine.submit(f"import time; time.sleep({seconds + 0.2})")
        second = await engine.submit("print('in time')", timeout_seconds=seconds)
        assert (await engine.wait(first)).state == "completed"
        return await engine.wait(second)

    second, _seconds = await with_enough_time(ask, lambda second: second.state == "completed")
    assert second.state == "completed"


async def test_those_in_line_move_up_when_keepers_are_killed(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=2)
    running = [await engine.submit(UP) for _ in range(2)]
    waiting = [await engine.submit("print('ran')") for _ in range(2)]
    pids = [engine.pids(execution, 1)[0] for execution in running]

    for execution in running:
        os.kill(engine.keeper(execution), 9)

    assert [(await engine.wait(execution)).state for execution in waiting] == ["completed", "completed"]
    assert [(await engine.get(execution)).state for execution in running] == ["lost", "lost"]
    gone(pids)


async def test_a_pending_execution_whose_keeper_is_killed_is_lost_and_never_began(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=1)
    first, second = await engine.submit(UP), await engine.submit("open('second-ran', 'w')")
    engine.printed(first)

    os.kill(engine.keeper(second), 9)
    second = await engine.wait(second)
    await engine.stop(first, "kill")

    assert second.state == "lost"
    assert "never started" in str(outcome_of(second).reason)
    assert not (engine.directory / "second-ran").exists()


async def test_a_full_line_takes_no_more(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=1, queued=2)
    submitted = [await engine.submit(UP) for _ in range(2)]

    with pytest.raises(QueueFullError) as refusal:
        await engine.submit("pass")

    assert refusal.value.code == "queue_full"
    assert "2 executions are waiting or running; at most 2 may." in refusal.value.message
    for execution in submitted:
        await engine.stop(execution, "kill")
    assert (await engine.run("pass")).state == "completed"


async def test_what_has_ended_unseen_does_not_fill_the_line(make_engine: MakeEngine) -> None:
    engine = make_engine(queued=2)
    for execution in [await engine.submit("pass") for _ in range(2)]:
        eventually((engine.folder(execution) / "outcome.json").exists)

    assert (await engine.run("pass")).state == "completed"


async def test_waiting_gives_up_after_its_time_and_changes_nothing(engine: Engine) -> None:
    execution = await engine.submit(UP)
    (pid,) = engine.pids(execution, 1)
    began = time.monotonic()

    seen = await engine.executions.wait(engine.principal, execution.id, 0.2)

    assert time.monotonic() - began >= 0.2
    assert (seen.state, seen.pid) == ("running", pid)
    assert alive(pid)
    await engine.stop(execution, "kill")


async def test_many_wait_for_one_execution(engine: Engine) -> None:
    execution = await engine.submit("import time; time.sleep(0.5); print('done')")
    states: list[str] = []

    async def wait() -> None:
        states.append((await engine.wait(execution)).state)

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(wait)

    assert states == ["completed"] * 100


async def test_a_watcher_hears_of_every_step_and_of_output(make_engine: MakeEngine) -> None:
    engine = make_engine(concurrent=1)
    first = await engine.submit("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)")
    second = await engine.submit("print('x', flush=True)")
    heard: list[str] = []

    def hear(step: str) -> None:
        heard.append(step)
        (engine.directory / "go").touch()

    await engine.executions.wait(engine.principal, second.id, 100, hear)

    steps = [step for number, step in enumerate(heard) if step != heard[number - 1]]
    assert steps[0] == "waiting"
    assert "running" in steps
    await engine.wait(first)
