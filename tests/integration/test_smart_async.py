"""Smart async in this process: what becomes of results, failures and work that is left behind."""

import asyncio
import contextvars
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from pyexec.app.principal import local_principal
from pyexec.domain.errors import InvalidArgumentError, ResultNotKeptError
from pyexec.domain.executions import Execution
from pyexec.executions.service import ExecutionService
from pyexec.sandbox.inside import InsideGuard
from pyexec.sandbox.losses import SERVER_ENDED, settle_loss
from pyexec.sandbox.observations import observe
from pyexec.smart_async import JobCancelledError, create_progress_callback, smart_async
from pyexec.smart_async.home import HOME
from tests.helpers import eventually

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")
CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@dataclass
class Row:
    name: str
    size: int


@pytest.fixture(autouse=True, scope="module")
def home(module_home: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYEXEC_HOME", str(module_home))
        yield module_home
    HOME.close()


async def service() -> ExecutionService:
    return (await HOME.get()).executions


async def newest() -> Execution:
    (found,), _total = await (await service()).newest(local_principal(), states=None, limit=1)
    return found


async def completed() -> int:
    _found, total = await (await service()).newest(local_principal(), states=["completed"], limit=1)
    return total


async def ended(job_id: str) -> Execution:
    return await (await service()).wait(local_principal(), job_id, 20)


def folder(home: Path, job_id: str) -> Path:
    return home / "executions" / job_id


def entered(gate: threading.Event) -> None:
    assert gate.wait(20)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"a": [1, 2.5, None, True, "é😀"]}, {"a": [1, 2.5, None, True, "é😀"]}),
        (Row("x", 1), {"name": "x", "size": 1}),
        ((1, 2), [1, 2]),
        (Path("/tmp"), "/tmp"),
        (0, 0),
        (None, None),
    ],
)
async def test_what_is_json_or_can_be_is_kept_and_returned_as_it_is(value: Any, kept: Any) -> None:
    @smart_async()
    async def tool() -> Any:
        return value

    assert await tool() == value
    execution = await newest()
    assert (execution.state, execution.kind) == ("completed", "smart_async")
    assert await (await service()).returned_by(execution) == kept


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "The result, of type object, cannot be kept as JSON"),
        (float("nan"), "The result, of type float, cannot be kept as JSON"),
        (b"\xff", "The result, of type bytes, cannot be kept as JSON"),
        (CYCLE, "The result, of type list, cannot be kept as JSON"),
        ("x" * 2**20, "The result is 1048578 bytes of JSON; at most 1048576 are kept."),
    ],
    ids=["object", "nan", "bytes", "cycle", "large"],
)
async def test_what_cannot_be_kept_is_a_failure_that_says_so(value: Any, why: str) -> None:
    @smart_async()
    async def tool() -> Any:
        return value

    with pytest.raises(ResultNotKeptError, match=why):
        await tool()
    execution = await newest()
    assert execution.state == "failed"
    assert execution.outcome is not None
    assert why in str(execution.outcome.reason)


async def test_a_plain_function_runs_in_a_thread_with_the_context_of_its_call() -> None:
    @smart_async()
    def tool() -> tuple[str, bool]:
        return VARIABLE.get(), threading.current_thread() is threading.main_thread()

    VARIABLE.set("of the call")
    assert await tool() == ("of the call", False)


async def test_the_context_of_a_call_stays_with_work_that_goes_on_in_its_event_loop() -> None:
    seen: list[tuple[str, asyncio.AbstractEventLoop]] = []
    gate = anyio.Event()

    @smart_async(default_timeout=0)
    async def tool() -> None:
        await gate.wait()
        seen.append((VARIABLE.get(), asyncio.get_running_loop()))

    VARIABLE.set("of the call")
    handle = await tool()
    VARIABLE.set("later")
    gate.set()
    assert (await ended(handle["job_id"])).state == "completed"
    assert seen == [("of the call", asyncio.get_running_loop())]


async def test_progress_is_told_from_any_thread_and_the_last_of_it_is_never_lost() -> None:
    @smart_async()
    async def tool() -> None:
        progress = create_progress_callback()
        for number in range(1000):
            progress(number, 1000)
        await asyncio.to_thread(progress, 1000, 1000, "done")
        progress(-1)
        progress(float("nan"), 5)

    await tool()
    told = await (await service()).progress_of(await newest())
    assert told is not None
    assert (told.current, told.total, told.message) == (1000, 1000, "done")


def test_outside_of_a_call_the_progress_callback_does_nothing() -> None:
    create_progress_callback()(1, 2, "nobody listens")


async def test_many_calls_at_once_each_have_a_record_and_a_result_of_their_own() -> None:
    @smart_async(default_timeout=30)
    async def tool(number: int) -> int:
        await checkpoint()
        return number

    results: dict[int, int] = {}
    before = await completed()

    async def call(number: int) -> None:
        results[number] = await tool(number)

    async with anyio.create_task_group() as calls:
        for number in range(20):
            calls.start_soon(call, number)
    assert results == {number: number for number in range(20)}
    assert await completed() == before + 20


async def test_the_end_of_the_program_that_a_function_asks_for_is_its_failure() -> None:
    @smart_async()
    async def tool() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await tool()
    execution = await newest()
    assert execution.outcome is not None
    assert (execution.state, execution.outcome.reason) == ("failed", "SystemExit: 3")


async def test_a_cancelled_function_may_tidy_up_and_its_failure_then_does_not_count() -> None:
    tidied: list[str] = []

    @smart_async(default_timeout=0)
    async def tool() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            tidied.append("yes")
            raise ValueError("in the end")

    handle = await tool()
    stopped = await (await service()).stop(local_principal(), handle["job_id"], "cancel", "Enough.")
    assert (stopped.state, tidied) == ("cancelled", ["yes"])
    assert stopped.outcome is not None
    assert stopped.outcome.reason == "Enough."


async def test_a_thread_whose_job_was_cancelled_is_told_by_its_callback() -> None:
    gate, told = threading.Event(), threading.Event()

    @smart_async(default_timeout=0)
    def tool() -> None:
        progress = create_progress_callback()
        entered(gate)
        try:
            progress(1)
        except JobCancelledError:
            told.set()
            raise

    handle = await tool()
    stopped = await (await service()).stop(local_principal(), handle["job_id"], "kill", "")
    assert stopped.state == "cancelled"
    gate.set()
    await eventually(told.is_set)


def test_work_is_lost_with_a_reason_when_its_event_loop_ends(home: Path) -> None:
    @smart_async(default_timeout=0)
    async def tool() -> None:
        create_progress_callback()(1, 2)
        await anyio.sleep_forever()

    async def serve() -> str:
        handle = await tool()
        job_id = str(handle["job_id"])
        await eventually((folder(home, job_id) / "started.json").exists)
        return job_id

    job_id = asyncio.run(serve())
    outcome = json.loads((folder(home, job_id) / "outcome.json").read_bytes())
    assert (outcome["kind"], outcome["reason"]) == ("lost", SERVER_ENDED)
    assert json.loads((folder(home, job_id) / "progress.json").read_bytes())["current"] == 1


FORKS = """
import os, sys
from pathlib import Path
from pyexec.sandbox.claims import is_held
from pyexec.sandbox.inside import InsideGuard
guard = InsideGuard(Path(sys.argv[1]))
(read, write), (ready, forked) = os.pipe(), os.pipe()
if os.fork() == 0:
    os.write(forked, b".")
    os.read(read, 1)
    os._exit(0)
os.read(ready, 1)
print(is_held(Path(sys.argv[1])))
guard.end("returned", None)
guard.close()
print(is_held(Path(sys.argv[1])))
os.write(write, b".")
os.wait()
"""


def test_a_fork_of_the_server_does_not_pass_for_it(tmp_path: Path) -> None:
    said = subprocess.run([sys.executable, "-c", FORKS, tmp_path], check=True, capture_output=True, text=True)
    assert (said.stdout, said.stderr) == ("True\nFalse\n", ""), "the fork is still there, and holds no lock"


def test_settling_lost_work_ends_no_server(tmp_path: Path) -> None:
    guarded, lost = tmp_path / "guarded", tmp_path / "lost"
    guarded.mkdir()
    lost.mkdir()
    guard = InsideGuard(guarded)
    guard.started()
    (lost / "started.json").write_bytes((guarded / "started.json").read_bytes())  # It names this very process.
    outcome = settle_loss(lost, "0" * 32).outcome
    assert outcome is not None
    assert (outcome.kind, outcome.reason) == ("lost", SERVER_ENDED)
    assert observe(guarded).phase == "running"
    guard.end("returned", None)
    guard.close()
    assert observe(guarded).phase == "ended"


async def test_the_arguments_that_are_added_must_be_free() -> None:
    with pytest.raises(InvalidArgumentError, match="has an argument 'job_label' of its own"):

        @smart_async()
        async def tool(job_label: str) -> None: ...


@pytest.mark.parametrize("seconds", [-1, 86401, float("nan")])
async def test_a_default_budget_that_makes_no_sense_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidArgumentError, match="it must be between 0 and 86400"):
        smart_async(default_timeout=seconds)


async def test_a_label_that_is_too_long_is_refused_before_anything_runs() -> None:
    ran: list[int] = []
    before = await completed()

    @smart_async()
    async def tool() -> None:
        ran.append(1)

    with pytest.raises(InvalidArgumentError, match="job_label has 201 characters"):
        await tool(job_label="x" * 201)
    assert ran == []
    assert await completed() == before
