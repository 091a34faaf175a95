"""Executions in sandboxes, and the keeper that owns those: whoever is killed, nothing is left or made up."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from pyexec.domain.errors import InvalidArgumentError
from tests.helpers.processes import alive, eventually
from tests.helpers.waiting import with_enough_time
from tests.integration.sandboxes import SETTINGS, SandboxEngine, behind, keepers

pytestmark = [pytest.mark.needs_uv, pytest.mark.root]


@pytest.fixture(scope="module")
def engine(module_home: Path) -> Iterator[SandboxEngine]:
    with SandboxEngine(module_home, **SETTINGS) as made:
        yield made


async def test_code_runs_in_a_sandbox_of_its_own_and_its_end_is_told(engine: SandboxEngine) -> None:
    told = await engine.value("import os, getpass; open('/work/kept', 'w').write('x'); [os.getcwd(), os.getuid()]")
    assert told == "['/work', 1000]"
    assert await engine.value("import os; os.listdir('/work')") == "[]"
    ended = [
        await engine.run(code) for code in ("raise SystemExit(3)", "import os; os._exit(7)", "import os; os.abort()")
    ]
    assert [(one.state, one.outcome.exit_code, one.outcome.signal) for one in ended if one.outcome] == [
        ("failed", 3, None),
        ("failed", 7, None),
        ("failed", 134, "SIGABRT"),
    ]
    assert await engine.stderr(ended[0]) == ""


async def test_the_environment_of_the_server_is_not_there_and_that_of_the_call_is(engine: SandboxEngine) -> None:
    code = "import os; sorted(name for name in os.environ if name.startswith(('PYEXEC', 'MINE', 'UV', 'VIRTUAL')))"
    execution = await engine.run(code, env_vars={"MINE": "1"})
    turn = await engine.executions.turn_of(execution)
    assert turn is not None
    assert turn.value == "['MINE']"


async def test_a_time_out_interrupts_then_kills_and_output_up_to_then_is_kept(engine: SandboxEngine) -> None:
    soft = "print('before')\nwhile True: pass"
    hard = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('before')\nwhile True:\n"
        "    try:\n        while True: pass\n    except BaseException: pass"
    )
    for code, by in ((soft, "SIGINT"), (hard, "SIGKILL")):
        execution, _seconds = await with_enough_time(
            lambda seconds, code=code: engine.run(code, timeout_seconds=seconds),
            lambda execution: execution.outcome and execution.outcome.stdout_bytes,
        )
        assert (execution.state, execution.outcome and execution.outcome.stopped_by) == ("timed_out", by)
        assert await engine.stdout(execution) == "before\n"


async def test_who_runs_out_of_memory_is_told_so_with_limit_and_peak(engine: SandboxEngine) -> None:
    one = await engine.run("import mmap\nkept = mmap.mmap(-1, 2**30)\nwhile True: kept.write(bytes(2**20))")
    assert one.outcome is not None
    assert (one.state, one.outcome.kind) == ("failed", "out_of_memory")
    assert re.search(r"limit of 256 MB \(at most it had 25\d MB\)", one.outcome.reason or "")


async def test_one_allocation_that_is_too_large_is_a_memory_error(engine: SandboxEngine) -> None:
    turn = await engine.executions.turn_of(await engine.run("kept = bytearray(10**9)"))
    assert turn is not None
    assert turn.failure is not None
    assert turn.failure.type == "MemoryError"


async def test_a_child_that_is_killed_for_want_of_memory_is_told(engine: SandboxEngine) -> None:
    code = """
import os, signal
for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(100 * 2**20)
        for at in range(0, len(kept), 4096): kept[at] = 1
        signal.pause()
died, status = os.wait()
raise SystemExit(f"a child ended with {status}")
"""
    ended = await engine.run(code)
    assert (ended.state, ended.outcome and ended.outcome.kind) == ("failed", "exited")
    assert "reached the limit of 256 MB" in ((ended.outcome and ended.outcome.reason) or "")
    assert "a child ended with 9" in await engine.stderr(ended)


async def test_what_is_cancelled_is_gone_with_all_its_processes(engine: SandboxEngine) -> None:
    execution, pid = await engine.begin_one()
    await engine.stop(execution)
    assert (await engine.wait(execution)).state == "cancelled"
    eventually(lambda: not alive(pid))


async def test_a_sandbox_outlives_the_server_and_another_one_finds_it(module_home: Path, engine: SandboxEngine) -> None:
    execution, pid = await engine.begin_one()
    with SandboxEngine(module_home, **SETTINGS) as other:
        assert (await other.get(execution)).state == "running"
        assert len(keepers(module_home)) == 1
        await other.stop(execution, "kill", "enough")
        ended = await engine.wait(execution)
    assert (ended.state, ended.outcome and ended.outcome.reason) == ("cancelled", "enough")
    eventually(lambda: not alive(pid))


async def test_a_killed_keeper_leaves_a_true_beginning_and_no_process(module_home: Path, engine: SandboxEngine) -> None:
    execution, pid = await engine.begin_one()
    (keeper,) = keepers(module_home)
    before = behind(module_home)
    assert pid in before
    os.kill(keeper, signal.SIGKILL)
    lost = await engine.wait(execution)
    assert (lost.state, await engine.stdout(lost)) == ("lost", "up\n")
    assert "keeper" in ((lost.outcome and lost.outcome.reason) or "")
    eventually(lambda: not alive(pid))
    # The next one ends what the last one has left, and works.
    assert await engine.value("6 * 7") == "42"
    eventually(lambda: not any(alive(one) for one in before))


async def test_many_at_once_each_get_their_own_answer(engine: SandboxEngine) -> None:
    found: dict[int, str | None] = {}

    async def one(number: int) -> None:
        found[number] = await engine.value(f"import os; kept = {number}; open('n', 'w').write('{number}'); kept")

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(one, number)
    assert found == {number: str(number) for number in range(12)}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"directory": "/tmp"}, "directory"),
        ({"environment": "mine"}, "environment"),
        ({"env_file": ".env"}, "env_file"),
    ],
)
async def test_what_a_sandbox_has_not_is_refused_by_name(
    engine: SandboxEngine, given: dict[str, Any], name: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} was given"):
        await engine.submit("1", **given)


async def test_more_memory_than_there_is_for_all_is_not_promised(
    state_home: Path, module_home: Path, engine: SandboxEngine
) -> None:
    await engine.value("1")  # What it runs in is there, and not made a second time.
    (state_home / "environments").symlink_to(module_home / "environments")
    with SandboxEngine(state_home, **{**SETTINGS, "sandboxes_memory": 1400, "sandbox_ready": 0}) as small:
        execution, _pid = await small.begin_one()
        refused = await small.run("1")
        await small.stop(execution, "kill")
        await small.wait(execution)
    assert refused.outcome is not None
    assert refused.outcome.kind == "start_failed"
    assert "There is no room for one more sandbox" in (refused.outcome.reason or "")
