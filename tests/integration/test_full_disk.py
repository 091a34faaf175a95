"""A disk that is full: new work is refused, what runs comes to its end, everything stays readable."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyexec.domain.errors import DiskFullError
from pyexec.domain.executions import ExecutionRequest
from tests.helpers.homes import temporary_home
from tests.helpers.processes import eventually
from tests.integration.engine import Engine, outcome_of

pytestmark = pytest.mark.root

MB = 1024 * 1024
DISK_MB = 16


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A state folder on a disk of its own."""
    with temporary_home() as home:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=700", "none", home], check=True)
        try:
            yield home
        finally:
            subprocess.run(["umount", "--lazy", home], check=True)


@pytest.fixture
def engine(small_disk: Path) -> Iterator[Engine]:
    with Engine(small_disk, free_disk_mb=2, concurrent=1) as engine:
        yield engine


def fill(home: Path) -> Path:
    """Use up what is left of the disk, to the last byte."""
    filler = home / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (MB, 4096, 1):
            try:
                while file.write(b"x" * size):
                    continue
            except OSError:
                continue
    return filler


async def test_new_work_is_refused_with_a_sentence_and_a_code(engine: Engine, small_disk: Path) -> None:
    fill(small_disk)

    with pytest.raises(DiskFullError) as refusal:
        await engine.submit("print(1)")

    assert refusal.value.code == "disk_full"
    assert "0 MB left; 2 MB are needed" in refusal.value.message


async def test_an_execution_that_fills_the_disk_ends_as_it_ended(engine: Engine, small_disk: Path) -> None:
    before = await engine.run("print('before')")
    execution = await engine.submit(
        "import sys\n"
        "for start in range(0, 3_000_000, 50_000):\n"
        "    sys.stdout.write(''.join(f'{number:08d}\\n' for number in range(start, start + 50_000)))\n"
        "sys.exit(7)\n"
    )

    execution = await engine.wait(execution)

    outcome = outcome_of(execution)
    assert (execution.state, outcome.exit_code) == ("failed", 7)
    assert outcome.stdout_bytes == 27_000_000
    answer = await engine.output(execution)
    assert answer.stdout.text.startswith("00000000\n00000001\n")
    assert await engine.stdout(before) == "before\n"
    found, total = await engine.executions.newest(engine.principal, states=None, limit=9)
    assert ([each.state for each in found], total) == (["failed", "completed"], 2)


async def test_what_runs_on_a_full_disk_can_be_read_and_stopped(engine: Engine, small_disk: Path) -> None:
    execution = await engine.submit("import time; print('up', flush=True); time.sleep(60)")
    engine.printed(execution)
    fill(small_disk)

    assert (await engine.get(execution)).state == "running"
    assert await engine.stdout(execution) == "up\n"
    execution = await engine.stop(execution)

    assert (execution.state, outcome_of(execution).stopped_by) == ("cancelled", "SIGINT")
    assert await engine.get(execution) == execution


async def test_what_waited_its_turn_on_a_full_disk_runs_to_its_end(engine: Engine, small_disk: Path) -> None:
    first = await engine.submit("import time; print('up', flush=True); time.sleep(60)")
    engine.printed(first)
    second = await engine.submit("import sys; print('lost'); sys.exit(3)")
    fill(small_disk)

    await engine.stop(first, "kill")
    second = await engine.wait(second)

    outcome = outcome_of(second)
    assert (second.state, outcome.kind, outcome.exit_code, outcome.stdout_bytes) == ("failed", "exited", 3, 5)


async def test_a_keeper_killed_on_a_full_disk_leaves_a_lost_execution(engine: Engine, small_disk: Path) -> None:
    execution = await engine.submit("import time; print('up', flush=True); time.sleep(60)")
    engine.printed(execution)
    fill(small_disk)

    os.kill(engine.keeper(execution), 9)
    execution = await engine.wait(execution)

    assert execution.state == "lost"
    assert await engine.stdout(execution) == "up\n"


async def test_another_server_can_be_started_and_sees_everything(engine: Engine, small_disk: Path) -> None:
    execution = await engine.run("print('before')")
    fill(small_disk)

    with Engine(small_disk) as other:
        found, total = await other.executions.newest(other.principal, states=None, limit=9)
        assert ([each.id for each in found], total) == ([execution.id], 1)
        assert await other.stdout(execution) == "before\n"
        with pytest.raises(DiskFullError):
            await other.submit("print(1)")


async def test_room_that_was_made_is_used_again(engine: Engine, small_disk: Path) -> None:
    execution = await engine.submit(
        "import os, time\n"
        "os.write(1, b'one\\n')\n"
        "while not os.path.exists('full'): time.sleep(0.01)\n"
        "os.write(1, b'two\\n')\n"
        "open('two', 'w').close()\n"
        "while not os.path.exists('room'): time.sleep(0.01)\n"
        "os.write(1, b'three\\n')\n"
    )
    engine.printed(execution)
    filler = fill(small_disk)
    (engine.directory / "full").touch()
    eventually((engine.directory / "two").exists)
    filler.unlink()
    (engine.directory / "room").touch()

    execution = await engine.wait(execution)

    assert outcome_of(execution).stdout_bytes == 14
    assert (await engine.stdout(execution)).endswith("three\n")
    request = ExecutionRequest(script_content="print('again')", use_uv=False)
    again = await engine.wait(await engine.executions.submit(engine.principal, request))
    assert again.state == "completed"
