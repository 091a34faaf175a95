"""Environments that are not finished: nothing half is ever used, nothing stays behind, the next run makes it anew."""

import os
import signal
import time

import pytest

from pyexec.environments.store import MARKER
from tests.helpers.processes import alive, eventually, marked_with
from tests.integration.conftest import MakeUvEngine
from tests.integration.engine import gone, outcome_of
from tests.integration.environments import SEEN, Gate, UvEngine

pytestmark = pytest.mark.needs_uv


async def require_made_anew(engine: UvEngine, gate: Gate) -> None:
    gate.open()
    assert await engine.printed_by(SEEN, dependencies=[str(gate.project)], args=["gated"]) == "gated"
    assert len(gate.begun()) == 2
    assert engine.folders() == engine.complete()


@pytest.mark.parametrize(
    ("victim", "state", "reason"),
    [
        ("builder", "failed", "The program that makes the environment was ended by SIGKILL."),
        pytest.param(
            "uv", "failed", "The environment could not be made: uv was ended by SIGKILL.", marks=pytest.mark.exhaustive
        ),
        ("keeper", "lost", "It never started: "),
    ],
)
async def test_whatever_is_killed_in_mid_build_nothing_half_is_used(
    uv_engine: UvEngine, gate: Gate, victim: str, state: str, reason: str
) -> None:
    execution = await uv_engine.submit("print('ran')", dependencies=[str(gate.project)])
    (build,) = gate.wait()
    pids = {
        "builder": uv_engine.builder(execution),
        "uv": uv_engine.process(execution, lambda command: "uv build" in command),
        "build": build,
        "keeper": uv_engine.keeper(execution),
    }

    os.kill(pids[victim], signal.SIGKILL)
    execution = await uv_engine.wait(execution)

    outcome = outcome_of(execution)
    assert (execution.state, outcome.exit_code) == (state, None)
    assert outcome.reason is not None
    assert outcome.reason.startswith(reason)
    assert await uv_engine.stdout(execution) == ""
    gone([*pids.values(), *marked_with(execution.id)])
    assert uv_engine.complete() == []
    await require_made_anew(uv_engine, gate)


@pytest.mark.exhaustive
async def test_those_who_wait_for_a_build_that_is_killed_make_it_themselves(
    make_uv_engine: MakeUvEngine, gate: Gate
) -> None:
    one, other = make_uv_engine(), make_uv_engine()
    first = await one.submit("", dependencies=[str(gate.project)])
    gate.wait()
    second = await other.submit(SEEN, dependencies=[str(gate.project)], args=["gated"])
    eventually(lambda: "building gated" in other.prepared(second))

    os.kill(one.builder(first), signal.SIGKILL)
    gate.open()

    assert (await other.wait(second)).state == "completed"
    assert await other.stdout(second) == "gated\n"
    assert (await one.wait(first)).state == "failed"
    assert len(gate.begun()) == 2


@pytest.mark.parametrize("mode", ["cancel", pytest.param("kill", marks=pytest.mark.exhaustive)])
async def test_cancelling_in_mid_build_ends_uv_and_leaves_no_folder(uv_engine: UvEngine, gate: Gate, mode: str) -> None:
    execution = await uv_engine.submit("print('ran')", dependencies=[str(gate.project)])
    gate.wait()
    pids = marked_with(execution.id)

    execution = await uv_engine.stop(execution, mode, "No longer needed.")

    outcome = outcome_of(execution)
    assert (execution.state, outcome.reason, outcome.started_at) == ("cancelled", "No longer needed.", None)
    assert len(pids) >= 3
    assert not [pid for pid in pids if alive(pid)]
    assert uv_engine.complete() == []
    if mode == "cancel":
        assert uv_engine.folders() == []
    else:
        await require_made_anew(uv_engine, gate)


@pytest.mark.case("B033")
async def test_making_an_environment_has_a_time_of_its_own_and_says_so(
    make_uv_engine: MakeUvEngine, gate: Gate
) -> None:
    engine = make_uv_engine(prepare_seconds=1)

    reason = await engine.failure(dependencies=[str(gate.project)], timeout_seconds=30)

    assert reason == "Installing what it needs took longer than 1 s."
    assert engine.folders() == []


@pytest.mark.case("B033")
@pytest.mark.exhaustive
async def test_the_time_of_a_program_begins_when_its_environment_is_ready(uv_engine: UvEngine, gate: Gate) -> None:
    execution = await uv_engine.submit("print('ran')", dependencies=[str(gate.project)], timeout_seconds=3)
    gate.wait()
    eventually(lambda: time.time() > execution.created_at + 3.2)
    gate.open()

    execution = await uv_engine.wait(execution)

    assert execution.state == "completed"
    assert execution.started_at is not None
    assert execution.started_at > execution.created_at + 3.2


async def test_a_folder_that_is_not_marked_as_complete_or_lacks_its_interpreter_is_made_anew(
    uv_engine: UvEngine,
) -> None:
    request = {"dependencies": ["iniconfig"], "args": ["iniconfig"]}
    first = await uv_engine.run(SEEN, **request)
    digest = (await uv_engine.answer(first)).digest
    assert digest is not None
    folder = uv_engine.store.folder(digest)
    (folder / MARKER).unlink()
    (module,) = folder.glob("lib/python*/site-packages/iniconfig/__init__.py")
    module.unlink()

    second = await uv_engine.run("import iniconfig; print(iniconfig.IniConfig.__name__)", **request)

    assert await uv_engine.stdout(second) == "IniConfig\n"
    assert (await uv_engine.answer(second)).digest == digest
    python = folder / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python")

    assert await uv_engine.printed_by(SEEN, **request) == "iniconfig"


async def test_what_was_left_half_made_is_swept_away(uv_engine: UvEngine, gate: Gate) -> None:
    execution = await uv_engine.submit("", dependencies=[str(gate.project)])
    gate.wait()
    (digest,) = uv_engine.folders()

    assert uv_engine.services.environments.sweep() == 0  # It is just being made.
    assert uv_engine.folders() == [digest]
    os.kill(uv_engine.builder(execution), signal.SIGKILL)
    await uv_engine.wait(execution)

    assert uv_engine.folders() == [digest]
    assert uv_engine.services.environments.sweep() == 1
    assert uv_engine.folders() == []
