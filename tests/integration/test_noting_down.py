"""An execution is noted down while it runs; one that cannot be is ended, and its caller hears why."""

from pathlib import Path

import pytest

from pyexec.domain.errors import DiskFullError
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
