"""A keeper that was killed: a true prefix of the output, a reason, and no process."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from pyexec.domain.errors import KeeperUnavailableError
from pyexec.domain.executions import Execution
from pyexec.processes import launcher as launchers
from pyexec.sandbox import handover
from pyexec_guest.keeper import linux
from tests.helpers.homes import processes_of
from tests.helpers.processes import alive, belonging_to, eventually
from tests.integration.engine import Engine, gone, outcome_of
from tests.integration.programs import FAMILY

MakeEngine = Callable[..., Engine]
UP = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


async def kill_keeper(engine: Engine, execution: Execution) -> None:
    keeper = engine.keeper(execution)
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: not alive(keeper))


def edit(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()) | values))


async def test_a_killed_keeper_leaves_a_true_prefix_a_reason_and_no_process(engine: Engine) -> None:
    execution = await engine.submit(FAMILY)
    family: dict[str, int] = json.loads(engine.printed(execution, 10)[0])
    await kill_keeper(engine, execution)
    if json.loads((engine.folder(execution) / "started.json").read_bytes())["group"] is None:
        # Nothing leads to this one where there are no control groups.
        os.kill(family.pop("without_environment"), signal.SIGKILL)

    execution = await engine.get(execution)

    outcome = outcome_of(execution)
    gone(list(family.values()))
    assert (execution.state, outcome.kind, outcome.exit_code) == ("lost", "lost", None)
    assert "keeper" in str(outcome.reason)
    assert outcome.started_at is not None
    _first, *numbers = engine.printed(execution)
    noted = (engine.directory / "ticks").read_text().splitlines()
    # Each is noted once it is printed: the last one may not have been.
    assert numbers == [str(number) for number in range(len(numbers))]
    assert len(numbers) <= len(noted) + 1
    assert outcome.stdout_bytes == (engine.folder(execution) / "stdout").stat().st_size
    eventually(lambda: not belonging_to(engine.home))
    assert await engine.get(execution) == execution


async def test_without_control_groups_strays_are_known_by_their_mark_and_their_pipes(engine_by: Engine) -> None:
    execution = await engine_by.submit(
        "import os, subprocess, time\n"
        "marked = subprocess.Popen(['sleep', '300'], start_new_session=True, stdout=subprocess.DEVNULL, "
        "stderr=subprocess.DEVNULL)\n"
        "holding = subprocess.Popen(['sleep', '300'], start_new_session=True, env={})\n"
        "print(os.getpid(), marked.pid, holding.pid, sep='\\n', flush=True)\n"
        "time.sleep(300)\n"
    )
    pids = engine_by.pids(execution, 3)
    await kill_keeper(engine_by, execution)

    execution = await engine_by.wait(execution)

    assert execution.state == "lost"
    gone(pids)


async def test_the_program_itself_dies_with_its_keeper_before_anybody_looks(engine: Engine) -> None:
    execution = await engine.submit(UP)
    pids = engine.pids(execution, 1)

    await kill_keeper(engine, execution)

    gone(pids)
    await engine.get(execution)


async def test_whoever_waits_for_it_is_told_at_once(engine: Engine) -> None:
    execution = await engine.submit(UP)
    engine.printed(execution)
    states: list[str] = []

    async def wait() -> None:
        states.append((await engine.wait(execution, 20)).state)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(wait)
        await checkpoint()
        await kill_keeper(engine, execution)

    assert states == ["lost"] * 5


async def test_a_list_shows_it_as_lost_too(engine: Engine) -> None:
    execution = await engine.submit(UP)
    engine.printed(execution)
    await kill_keeper(engine, execution)

    found, total = await engine.executions.newest(engine.principal, states=None, limit=9)

    assert ([record.state for record in found], total) == (["lost"], 1)


async def test_stopping_a_lost_execution_says_that_it_is_lost(engine: Engine) -> None:
    execution = await engine.submit(UP)
    engine.printed(execution)
    await kill_keeper(engine, execution)

    assert (await engine.stop(execution, "kill")).state == "lost"


async def test_two_servers_that_look_at_once_settle_it_once(make_engine: MakeEngine) -> None:
    one, other = make_engine(), make_engine()
    execution = await one.submit(UP)
    one.printed(execution)
    await kill_keeper(one, execution)
    found: list[Execution] = []

    async def look(engine: Engine) -> None:
        found.append(await engine.wait(execution))

    async with anyio.create_task_group() as tasks:
        for engine in (one, other, one, other):
            tasks.start_soon(look, engine)

    assert len({outcome_of(each).ended_at for each in found}) == 1


async def test_a_keeper_that_is_asked_to_end_ends_its_program_first(engine: Engine) -> None:
    execution = await engine.submit(UP)
    (pid,) = engine.pids(execution, 1)

    os.kill(engine.keeper(execution), signal.SIGTERM)
    execution = await engine.wait(execution)

    assert (execution.state, outcome_of(execution).reason) == ("cancelled", "The system asked the keeper to end.")
    assert not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
async def test_a_keeper_does_not_mind_what_a_terminal_sends(engine: Engine, number: int) -> None:
    execution = await engine.submit("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('done')")

    os.kill(engine.keeper(execution), number)
    (engine.directory / "go").touch()

    assert (await engine.wait(execution)).state == "completed"


# -- a pid that now belongs to somebody else ------------------------------------------------------------------------


@pytest.mark.case("B122")
async def test_a_recycled_pid_of_a_lost_execution_is_left_alone(engine: Engine) -> None:
    execution = await engine.submit(UP)
    engine.printed(execution)
    await kill_keeper(engine, execution)
    with subprocess.Popen(["sleep", "60"]) as harmless:
        edit(
            engine.folder(execution) / "started.json", pid=harmless.pid, start_ticks=linux.start_ticks(harmless.pid) - 1
        )

        execution = await engine.stop(execution, "kill")

        assert execution.state == "lost"
        assert alive(harmless.pid)
        harmless.kill()


@pytest.mark.case("B122")
async def test_a_recycled_pid_of_an_ended_execution_is_left_alone(engine: Engine) -> None:
    execution = await engine.run("print('done')")
    with subprocess.Popen(["sleep", "60"]) as harmless:
        edit(engine.folder(execution) / "started.json", pid=harmless.pid, start_ticks=linux.start_ticks(harmless.pid))

        assert (await engine.stop(execution, "kill")).state == "completed"
        assert alive(harmless.pid)
        harmless.kill()


async def test_after_a_restart_of_the_machine_pids_and_groups_mean_nothing(engine: Engine) -> None:
    execution = await engine.submit(UP)
    engine.printed(execution)
    await kill_keeper(engine, execution)
    with subprocess.Popen(["sleep", "60"]) as harmless:
        edit(
            engine.folder(execution) / "started.json",
            boot="an earlier one",
            pid=harmless.pid,
            start_ticks=linux.start_ticks(harmless.pid),
        )

        assert (await engine.get(execution)).state == "lost"
        assert alive(harmless.pid)
        harmless.kill()


@pytest.mark.root
async def test_a_control_group_that_is_not_ours_is_left_alone(engine: Engine) -> None:
    execution = await engine.submit(UP)
    engine.printed(execution)
    ours = json.loads((engine.folder(execution) / "started.json").read_bytes())["group"]
    await kill_keeper(engine, execution)
    foreign = Path(ours).with_name(f"foreign-{execution.id}")
    foreign.mkdir()
    try:
        with subprocess.Popen(["sleep", "60"]) as harmless:
            (foreign / "cgroup.procs").write_text(str(harmless.pid))
            edit(engine.folder(execution) / "started.json", group=str(foreign))

            assert (await engine.get(execution)).state == "lost"
            assert alive(harmless.pid)
            harmless.kill()
        eventually(lambda: not (foreign / "cgroup.procs").read_text())
    finally:
        foreign.rmdir()
        Path(ours).rmdir()


# -- the launcher ---------------------------------------------------------------------------------------------------


async def test_a_killed_launcher_takes_no_keeper_with_it_and_the_next_call_starts_another(engine: Engine) -> None:
    running = await engine.submit("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('done')")
    engine.program(running)
    first = engine.launcher()

    os.kill(first, signal.SIGKILL)
    eventually(lambda: not alive(first))
    assert (await engine.run("print('next')")).state == "completed"
    (engine.directory / "go").touch()

    assert (await engine.wait(running)).state == "completed"
    assert engine.launcher() != first


async def test_a_launcher_that_ends_leaves_its_keepers_at_work(make_engine: MakeEngine) -> None:
    first = make_engine()
    running = await first.submit("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('done')")
    first.program(running)

    first.close()
    second = make_engine()
    assert (await second.get(running)).state == "running"
    (first.directory / "go").touch()

    assert (await second.wait(running)).state == "completed"


async def test_a_launcher_that_does_not_start_is_said_and_leaves_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launchers, "_KEEPER", Path("/nowhere"))

    with pytest.raises(KeeperUnavailableError) as refusal:
        await engine.submit("print(1)")

    assert refusal.value.code == "keeper_unavailable"
    assert list((engine.home / "executions").iterdir()) == []
    assert await engine.executions.newest(engine.principal, states=None, limit=9) == ([], 0)
    monkeypatch.undo()
    assert (await engine.run("print(1)")).state == "completed"


async def test_a_keeper_that_would_take_over_too_late_starts_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = engine.launcher()
    spare = eventually(lambda: spare_keepers(engine))
    for pid in (launcher, *spare):
        os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(handover, "HANDOVER_SECONDS", 0.2)

    with pytest.raises(KeeperUnavailableError, match="did not take over"):
        await engine.submit("open('it-ran', 'w')")
    monkeypatch.undo()
    for pid in (launcher, *spare):
        os.kill(pid, signal.SIGCONT)

    assert (await engine.run("print(1)")).state == "completed"
    eventually(lambda: not belonging_to(engine.home))
    assert not (engine.directory / "it-ran").exists()


def spare_keepers(engine: Engine) -> list[int]:
    """Return the keepers that wait to be needed."""
    launcher = engine.launcher()
    return [each.pid for each in processes_of(engine.home) if each.pid != launcher]
