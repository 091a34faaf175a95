"""Executions in sandboxes, and the keeper that owns those: whoever is killed, nothing is left or made up."""

import os
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.executions import Execution, ExecutionRequest
from tests.helpers.processes import alive, eventually
from tests.helpers.waiting import with_enough_time
from tests.integration.sandboxes import BUILD_SECONDS, SETTINGS, SandboxEngine, behind, keepers

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
def engine(module_home: Path, folders: Path, kept_environments: None) -> Iterator[SandboxEngine]:
    data = f"sales={folders / 'sales'}, secret={folders / 'secret'}; nobody"
    with SandboxEngine(module_home, **SETTINGS, sandbox_data=data) as made:
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
        ({"constraints": ("six<2",)}, "constraints"),
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
    with SandboxEngine(state_home, **{**SETTINGS, "sandboxes_memory": 1200, "sandbox_ready": 0}) as small:
        refused = await small.run("1")
    assert refused.outcome is not None
    assert refused.outcome.kind == "start_failed"
    assert "There is no room for one more sandbox" in (refused.outcome.reason or "")


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
