"""Programs in a folder of this machine, run in a sandbox; and the folders that an operator lets sandboxes read."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.executions import Execution, ExecutionRequest
from tests.integration.sandboxes import BUILD_SECONDS, SETTINGS, SandboxEngine

pytestmark = [pytest.mark.needs_uv, pytest.mark.root]

SCRIPT = """
import os, socket, sys
import helper
print(helper.VALUE, __name__, sys.argv[1:], open("data.csv").read(), os.getcwd())
open("written.txt", "w").write("kept")
for attempt in (
    lambda: open("/code/new", "w"), lambda: open("data.csv", "a"), lambda: socket.create_connection(("1.1.1.1", 53), 1)
):
    try:
        attempt()
    except OSError as error:
        print(type(error).__name__, error.errno)
def fail():
    raise ValueError("at the end")
fail()
"""


@pytest.fixture(scope="module")
def folders() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pe-shared-", dir="/var/tmp") as name:
        for folder in ("sales", "secret", "project/package"):
            Path(name, folder).mkdir(parents=True)
        Path(name, "sales", "a.csv").write_text("1,2")
        Path(name, "project", "helper.py").write_text("VALUE = 'helped'")
        Path(name, "project", "data.csv").write_text("x,y")
        Path(name, "project", "main.py").write_text(SCRIPT.lstrip())
        Path(name, "project", "package", "__init__.py").touch()
        Path(name, "project", "package", "__main__.py").write_text("import sys; print(__package__, sys.argv[1:])")
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def engine(module_home: Path, folders: Path) -> Iterator[SandboxEngine]:
    data = f"sales={folders / 'sales'}, secret={folders / 'secret'}; nobody"
    with SandboxEngine(module_home, **SETTINGS, sandbox_data=data) as made:
        yield made


async def ran(engine: SandboxEngine, folder: Path, **request: Any) -> Execution:
    asked = ExecutionRequest(directory=str(folder), sandboxed=True, timeout_seconds=60, **request)
    return await engine.wait(await engine.executions.submit(engine.principal, asked), BUILD_SECONDS)


async def test_data_folders_can_be_read_by_those_they_are_for(engine: SandboxEngine) -> None:
    look = "import os; os.listdir('/data'), open('/data/sales/a.csv').read()"
    assert await engine.value(look) == "(['sales'], '1,2')"
    assert await engine.value(look, session_id="mine") == "(['sales'], '1,2')"
    assert await engine.value("open('/data/sales/b', 'w')") is None


async def test_a_script_runs_in_a_sandbox_that_can_read_its_folder(engine: SandboxEngine, folders: Path) -> None:
    execution = await ran(engine, folders / "project", script_path="main.py", args=("a", "b c"))
    assert (execution.state, execution.outcome and execution.outcome.exit_code) == ("failed", 1)
    assert await engine.stdout(execution) == (
        "helped __main__ ['a', 'b c'] x,y /work\nOSError 30\nPermissionError 13\nOSError 101\n"
    )
    told = [line for line in (await engine.stderr(execution)).splitlines(keepends=True) if line.strip(" ~^\n")]
    assert "".join(told) == (
        "Traceback (most recent call last):\n"
        '  File "/code/main.py", line 14, in <module>\n'
        "    fail()\n"
        '  File "/code/main.py", line 13, in fail\n'
        '    raise ValueError("at the end")\n'
        "ValueError: at the end\n"
    )
    kept = await engine.executions.artifacts(engine.principal, execution.id)
    assert [one.name for one in kept] == ["written.txt"]
    assert any(f"job-file://{execution.id}/" in note for note in execution.notes)
    assert sorted(os.listdir(folders / "project")) == ["data.csv", "helper.py", "main.py", "package"]


async def test_modules_and_code_run_in_the_folder_too(engine: SandboxEngine, folders: Path) -> None:
    module = await ran(engine, folders / "project", module="package", args=("a",))
    assert await engine.stdout(module) == "package ['a']\n"
    code = "import helper, sys; print(helper.VALUE, sys.argv, open('data.csv').read()); raise SystemExit(3)"
    inline = await ran(engine, folders / "project", script_content=code, args=("a",))
    assert await engine.stdout(inline) == "helped ['-c', 'a'] x,y\n"
    assert inline.outcome is not None
    assert inline.outcome.exit_code == 3
    outside = await ran(engine, folders / "sales", script_path=str(folders / "project" / "helper.py"))
    assert outside.state == "completed"


async def test_what_cannot_be_in_a_sandbox_is_refused(engine: SandboxEngine, folders: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="pyexec's own state lies in it"):
        await ran(engine, Path("/"), script_content="1")
    with pytest.raises(InvalidArgumentError, match="A notebook cannot be run in a sandbox"):
        await ran(engine, folders / "project", script_path="a.ipynb")
    with pytest.raises(InvalidArgumentError, match="env_file was given"):
        await ran(engine, folders / "project", script_path="main.py", env_file="data.csv")
    (folders / "closed").mkdir(mode=0o700)
    closed = await ran(engine, folders / "closed", script_content="1")
    assert closed.outcome is not None
    assert closed.outcome.kind == "start_failed"
    assert f"Run `chmod -R a+rX {folders / 'closed'}`." in (closed.outcome.reason or "")
