"""An execution is noted down while it runs; one that cannot be is ended, and its caller hears why."""

from pathlib import Path

import pytest

from pyexec.domain.errors import DiskFullError, RecordsUnavailableError
from pyexec.domain.executions import Execution
from pyexec.storage.executions import ExecutionStore
from tests.helpers.processes import alive
from tests.helpers.processes import eventually as appears
from tests.helpers.waiting import eventually
from tests.integration.engine import Engine


async def test_what_cannot_be_noted_down_is_ended_and_refused(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "pid"

    def add(_store: ExecutionStore, _execution: Execution) -> None:
        appears(told.exists)  # It runs by now.
        raise DiskFullError("There is no room for a record.")

    monkeypatch.setattr(ExecutionStore, "add", add)
    code = f"import os, time; open({str(told)!r} + '~', 'w').write(str(os.getpid())); "
    code += f"os.rename({str(told)!r} + '~', {str(told)!r}); time.sleep(60)"
    with pytest.raises(DiskFullError):
        await engine.submit(code)
    pid = int(told.read_text())
    await eventually(lambda: not alive(pid))


async def test_with_a_request_id_nothing_runs_that_could_not_be_found_again(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(_store: ExecutionStore, _execution: Execution) -> None:
        raise DiskFullError("There is no room for a record.")

    monkeypatch.setattr(ExecutionStore, "add", add)
    mark = tmp_path / "ran"
    with pytest.raises(DiskFullError):
        await engine.submit(f"open({str(mark)!r}, 'w')", request_id="once")
    monkeypatch.undo()
    assert (await engine.run("print(1)", request_id="once")).state == "completed"
    assert not mark.exists()


@pytest.mark.parametrize("looked_at", [False, True])
async def test_a_call_that_was_refused_runs_when_it_is_made_again_though_its_record_was_kept(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, looked_at: bool
) -> None:
    really, away = ExecutionStore.add, RecordsUnavailableError("It does not answer.")

    def add(store: ExecutionStore, execution: Execution) -> None:
        really(store, execution)
        raise away

    def forget(_store: ExecutionStore, _owner: str, _id: str) -> None:
        raise away

    with monkeypatch.context() as patch:
        patch.setattr(ExecutionStore, "add", add)
        patch.setattr(ExecutionStore, "forget", forget)
        with pytest.raises(RecordsUnavailableError):
            await engine.submit("print(1)", request_id="once")
    if looked_at:  # Then it is known as lost.
        await engine.executions.active(engine.principal)

    again = await engine.run("print(1)", request_id="once")

    assert again.state == "completed"
    assert (await engine.submit("print(1)", request_id="once")).id == again.id
    found, total = await engine.executions.newest(engine.principal, states=None, limit=9)
    assert ([one.id for one in found], total) == ([again.id], 1)
