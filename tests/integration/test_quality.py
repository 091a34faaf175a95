"""What becomes of a tool that cannot be had, is still being installed, or is no longer waited for."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from pyexec.domain.errors import ToolFailedError
from tests.helpers.waiting import eventually
from tests.integration.engine import Engine

pytestmark = pytest.mark.needs_uv

MakeEngine = Callable[..., Engine]


async def jobs(engine: Engine) -> int:
    _found, total = await engine.executions.newest(engine.principal, states=None, limit=9)
    return total


async def test_a_tool_that_cannot_be_installed_is_an_error_and_leaves_no_job(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cold"))
    engine = make_engine()
    with pytest.raises(ToolFailedError, match="ruff could not be run") as raised:
        await engine.services.quality.format(engine.principal, source="x=1\n")
    assert raised.value.code == "tool_failed"
    assert await jobs(engine) == 0


async def test_a_tool_that_is_still_being_installed_is_named_with_its_job_and_there_the_next_time(
    make_engine: MakeEngine,
) -> None:
    engine = make_engine(wait_seconds=0)
    with pytest.raises(ToolFailedError, match="still being installed, by job") as raised:
        await engine.services.quality.format(engine.principal, source="x=1\n")
    (job,) = await engine.executions.active(engine.principal)
    assert job.id in raised.value.message
    assert (job.kind, job.label) == ("quality", "ruff")
    await engine.wait(job)
    done = await engine.services.quality.format(engine.principal, source="x=1\n")
    assert done.formatted == "x = 1\n"


async def test_when_nobody_waits_any_more_the_tool_is_ended_and_gone(make_engine: MakeEngine) -> None:
    engine = make_engine()
    async with anyio.create_task_group() as tasks:

        async def analyse() -> None:
            await engine.services.quality.analyse(engine.principal, source="x=1\n")

        tasks.start_soon(analyse)

        async def both() -> bool:
            return len(await engine.executions.active(engine.principal)) == 2

        await eventually(both)
        tasks.cancel_scope.cancel()
    assert await jobs(engine) == 0
    assert list((engine.home / "executions").iterdir()) == []
