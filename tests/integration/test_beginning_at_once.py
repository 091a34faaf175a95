"""Cells that need not wait for anything: nothing about them is lost, and nobody is overtaken."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import DiskFullError, InterpreterNotFoundError, QueueFullError, SessionEndedError
from pyexec.domain.executions import Execution, ExecutionRequest, Harness
from pyexec.domain.principals import Principal
from pyexec.executions import submission
from pyexec.executions.afterwards import Afterwards
from pyexec.sandbox.handover import give_files
from pyexec.sandbox.keepers import KeeperConnection, connect
from tests.helpers.waiting import eventually
from tests.integration.sandboxes import FOREVER, SETTINGS, SandboxEngine

pytestmark = [pytest.mark.needs_uv, pytest.mark.root]


@pytest.fixture(scope="module")
def engine(module_home: Path, kept_environments: None) -> Iterator[SandboxEngine]:
    with SandboxEngine(module_home, **SETTINGS) as made:
        yield made


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers note nothing down behind, as one that is killed in that moment."""

    def gather(_self: Afterwards, _work: Callable[[list[Any]], object], _item: object) -> None:
        return None

    monkeypatch.setattr(Afterwards, "gather", gather)


async def test_another_server_knows_a_cell_whose_own_was_killed_before_it_noted_it_down(
    engine: SandboxEngine, monkeypatch: pytest.MonkeyPatch, forgetful: None
) -> None:
    await engine.run("x = 20", session_id="forgotten")
    done = await engine.run("print(x + 1); x", session_id="forgotten")
    monkeypatch.undo()
    with SandboxEngine(engine.home, **SETTINGS) as other:
        assert await other.executions.turn_of(done) is not None
        found = await other.executions.get(other.principal, done.id)
        assert (found.state, found.session, await other.stdout(found)) == ("completed", "forgotten", "21\n")


async def test_a_session_outlives_a_server_that_is_killed_when_it_has_just_asked(
    engine: SandboxEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.run("x = 1", session_id="asked")
    await engine.run("x += 1", session_id="asked")

    def give_files(*_told: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(submission, "give_files", give_files)
    with pytest.raises(RuntimeError, match="killed"):
        await engine.run("x += 1", session_id="asked")
    with pytest.raises(RuntimeError, match="killed"):  # Nobody could end this one.
        await engine.run(FOREVER, session_id="asked", timeout_seconds=0)
    monkeypatch.undo()
    assert await engine.value("x", "asked") == "3"


async def test_a_cancellation_that_comes_right_behind_the_request_is_heard(
    engine: SandboxEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.run("x = 1", session_id="cancelled")

    def give_files_and_cancel(keeper: KeeperConnection, files: Mapping[str, str]) -> None:
        give_files(keeper, files)
        keeper.stop("cancel", "It was not meant.")

    with monkeypatch.context() as patch:
        patch.setattr(submission, "give_files", give_files_and_cancel)
        ended = await engine.run(FOREVER, session_id="cancelled", timeout_seconds=0)
    assert (ended.state, ended.outcome and ended.outcome.reason) == (
        "cancelled",
        "It was not meant. It was interrupted, and its session keeps its variables.",
    )
    assert await engine.value("x", "cancelled") == "1"


class Heard:
    """An observer that keeps what it hears."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def submitted(self, _principal: Principal, execution: Execution, _request: ExecutionRequest) -> None:
        self.told.append(("submitted", execution.id))

    def refused(self, _principal: Principal, _request: ExecutionRequest, code: str) -> None:
        self.told.append(("refused", code))

    def ended(self, execution: Execution) -> None:
        """It is of no interest here."""


async def test_what_is_refused_was_not_submitted_and_what_has_begun_was_by_the_time_that_it_is_noted(
    engine: SandboxEngine,
) -> None:
    heard = Heard()
    with SandboxEngine(engine.home, heard, **SETTINGS) as observed:
        ran = [await observed.run("x = 1", session_id="audited") for _ in range(2)]
        ran.append(await observed.run("import os; os._exit(3)", session_id="audited"))
        for _ in range(2):
            with pytest.raises(SessionEndedError):
                await observed.run("x", session_id="audited")
    assert heard.told == [*(("submitted", one.id) for one in ran), *[("refused", "session_ended")] * 2]


async def test_a_cell_that_runs_is_in_the_list_of_another_server(
    engine: SandboxEngine, monkeypatch: pytest.MonkeyPatch, forgetful: None
) -> None:
    await engine.run("1", session_id="listed")
    running, _pid = await engine.begin_one("listed")
    monkeypatch.undo()
    with SandboxEngine(engine.home, **SETTINGS) as other:
        assert running.id in [one.id for one in await other.executions.active(other.principal)]
        ended = await other.stop(running)
    assert ended.state == "cancelled"


async def test_its_folder_holds_what_that_of_any_other_does(engine: SandboxEngine) -> None:
    await engine.run("x = 1", session_id="folder")
    done = await engine.run("x + 1", session_id="folder")
    folder = engine.folder(done)
    assert (folder / "code" / "script.py").read_text() == "x + 1"
    assert json.loads((folder / "execution.json").read_text())["session"] == "folder"
    assert json.loads((folder / "started.json").read_text())["started_at"] == done.started_at
    outcome = json.loads((folder / "outcome.json").read_text())
    assert done.outcome is not None
    assert (outcome["kind"], outcome["exit_code"], outcome["ended_at"]) == ("exited", 0, done.outcome.ended_at)
    assert sorted(path.name for path in folder.iterdir() if path.name.endswith((".part", "socket"))) == []


async def test_who_waits_for_it_is_told_all_with_its_end_and_reads_nothing(
    engine: SandboxEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.run("x = 1", session_id="told")
    request = ExecutionRequest(
        script_content="x + 1",
        session_id="told",
        harness=Harness(guest=True),
        sandboxed=True,
        timeout_seconds=60,
    )
    with closing(await engine.executions.submit_to_wait(engine.principal, request)) as submitted:
        await engine.executions.wait_for_submitted(submitted, 60)
        await submitted.noted()
        shutil.rmtree(engine.folder(submitted.execution))  # Nobody looks there.
        cell = await engine.executions.cell_of(submitted, None)
    assert cell.turn is not None
    assert (cell.turn.value, cell.reading.execution.state) == ("2", "completed")


async def test_an_empty_request_id_is_none(engine: SandboxEngine) -> None:
    await engine.run("1", session_id="empty")
    ran = [await engine.run("2", session_id="empty", request_id="") for _ in range(2)]
    assert ran[0].id != ran[1].id
    assert [(await engine.get(one)).state for one in ran] == ["completed", "completed"]


async def test_on_a_nearly_full_disk_a_cell_in_a_live_session_is_refused(engine: SandboxEngine) -> None:
    await engine.run("1", session_id="full")
    await engine.run("1", session_id="full")
    with SandboxEngine(engine.home, **SETTINGS, free_disk_mb=10**7) as strict, pytest.raises(DiskFullError):
        await strict.run("1", session_id="full")


async def test_a_cell_whose_folder_is_removed_while_it_runs_holds_up_nobody(engine: SandboxEngine) -> None:
    await engine.run("1", session_id="removed")
    running = await engine.submit(FOREVER, timeout_seconds=2.0, session_id="removed")
    async for piece in engine.executions.follow(engine.principal, running.id):
        if b"up" in piece.data:  # Nothing more is written before its end.
            break
    shutil.rmtree(engine.folder(running))
    assert await engine.value("1 + 1", "removed") == "2"


async def test_a_cell_that_goes_on_can_be_reached_by_whoever_wants_it_to_end(engine: SandboxEngine) -> None:
    await engine.run("1", session_id="reached")
    running, _pid = await engine.begin_one("reached")
    async with connect(engine.folder(running)) as keeper:
        assert keeper is not None
        hello = await keeper.next()
    assert hello is not None
    assert (hello["t"], hello["phase"]) == ("hello", "running")
    assert (await engine.stop(running)).state == "cancelled"


async def test_a_session_that_somebody_else_has_made_anew_is_not_taken_for_the_old_one(engine: SandboxEngine) -> None:
    await engine.run("x = 1", session_id="anew")
    assert await engine.value("x", "anew") == "1"
    with SandboxEngine(engine.home, **SETTINGS) as other:
        await other.sessions.close(other.principal, "anew")
        assert await engine.value("'x' in globals()", "anew") == "False"
        await other.run("x = 2", session_id="anew")
    assert await engine.value("x", "anew") == "2"


async def test_a_closed_session_can_be_made_anew_with_another_interpreter(engine: SandboxEngine) -> None:
    await engine.run("1", session_id="other")
    await engine.run("1", session_id="other")
    await engine.sessions.close(engine.principal, "other")
    with pytest.raises(InterpreterNotFoundError):  # And not: that it does not fit a session which is gone.
        await engine.run("1", session_id="other", python_version="3.99")


async def test_those_that_come_while_one_runs_follow_in_their_order(engine: SandboxEngine) -> None:
    await engine.run("seen = []", session_id="order")
    submitted = [await engine.submit(f"seen.append({number})", session_id="order") for number in range(6)]
    for one in submitted:
        assert (await engine.wait(one)).state == "completed"
    assert await engine.value("seen", "order") == "[0, 1, 2, 3, 4, 5]"


async def test_what_waits_in_sessions_counts_among_those_that_may_wait(engine: SandboxEngine) -> None:
    with SandboxEngine(engine.home, **SETTINGS, queued=3) as strict:
        await strict.run("1", session_id="counted")
        running, _pid = await strict.begin_one("counted")
        waiting = [await strict.submit("1", session_id="counted") for _ in range(2)]
        with pytest.raises(QueueFullError, match="3 executions are waiting or running; at most 3 may"):
            await strict.submit("1", session_id="counted")
        await strict.stop(running)
        for one in waiting:
            assert (await strict.wait(one)).state == "completed"


async def test_a_cell_that_goes_on_gives_way_to_others_until_it_has_ended(engine: SandboxEngine) -> None:
    running, pid = await engine.begin_one("yielding")
    yields = yielding(pid)
    await eventually(lambda: yields.read_text() == "1\n", what="it gives way")
    await engine.stop(running)
    assert await engine.value("1 + 1", "yielding") == "2"
    assert yields.read_text() == "0\n"


def yielding(pid: int) -> Path:
    """Return the file that says whether the control group of a process gives way to others."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _number, controllers, path = line.split(":", 2)
        top = Path("/sys/fs/cgroup", "cpu" if "cpu" in controllers.split(",") else "")
        if (found := Path(f"{top}{path}", "cpu.idle")).exists():
            return found
    raise AssertionError("this kernel knows nothing of it")
