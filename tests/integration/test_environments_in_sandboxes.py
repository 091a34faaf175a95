"""Sandboxes that run on an environment with a name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.domain.sandboxes import PYTHON
from pyexec.environments.sandboxes import PREFERRED
from pyexec.walls.bubblewrap.guard import STARTING
from tests.integration.environments import make_wheel, project
from tests.integration.sandboxes import BUILD_SECONDS, SETTINGS, SandboxEngine

# What a client sees of it is in the tests from end to end.
pytestmark = [pytest.mark.needs_uv, pytest.mark.root, pytest.mark.exhaustive]

SOMEBODY_ELSE = Principal(issuer="https://issuer.example", subject="somebody")
STARTS_A_THREAD = """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
VALUE = "mine"
"""


@pytest.fixture(scope="module")
def engine(module_home: Path) -> Iterator[SandboxEngine]:
    with SandboxEngine(module_home, **SETTINGS) as made:
        yield made


async def named(engine: SandboxEngine, name: str, *dependencies: str, python: str = PREFERRED) -> Execution:
    """Make an environment with a name."""
    asked = ExecutionRequest(
        kind="environment", script_content="", keep_as=name, python_version=python, dependencies=dependencies
    )
    ended = await engine.wait(await engine.executions.submit(engine.principal, asked), BUILD_SECONDS)
    assert ended.state == "completed", (ended.outcome, engine.prepared(ended))
    return ended


@pytest.fixture(scope="module")
async def analysis(engine: SandboxEngine, tmp_path_factory: pytest.TempPathFactory) -> Execution:
    """An environment without IPython, with something in it that no fork server could import ahead."""
    wheel = make_wheel(tmp_path_factory.mktemp("wheels"), "pandas", "7", {"pandas.py": STARTS_A_THREAD})
    return await named(engine, "analysis", "six==1.16.0", str(wheel))


async def turn_in(engine: SandboxEngine, code: str, **request: Any) -> str | None:
    """Run a cell; return the value of its last expression."""
    execution = await engine.run(code, **request)
    turn = await engine.executions.turn_of(execution)
    assert turn is not None, (execution.outcome, engine.prepared(execution))
    return turn.value


async def test_a_fresh_sandbox_runs_on_it_and_gets_what_the_guest_needs_besides(
    engine: SandboxEngine, analysis: Execution
) -> None:
    code = "import pandas, six; [six.__version__, pandas.VALUE]"
    first = await engine.run(code, environment="analysis")
    turn = await engine.executions.turn_of(first)
    assert turn is not None, (first.outcome, engine.prepared(first))
    assert turn.value == "['1.16.0', 'mine']"
    said = engine.prepared(first)
    assert any(line.startswith("installing ") for line in said)
    assert said[-1] == STARTING
    answer = await engine.answer(first)
    assert answer.digest != (await engine.answer(analysis)).digest
    assert {"six==1.16.0"} < set(answer.packages or ())
    again = await engine.run(code, environment="analysis")
    assert engine.prepared(again) == []


async def test_packages_of_a_call_come_on_top_of_it(engine: SandboxEngine, analysis: Execution) -> None:
    code = "import iniconfig, six; [iniconfig.__file__, six.__version__]"
    found = await turn_in(engine, code, environment="analysis", dependencies=("iniconfig",))
    assert found == "['/packages/iniconfig/__init__.py', '1.16.0']"
    with pytest.raises(InvalidArgumentError, match=r"sandboxes have six 1\.16\.0"):
        await engine.run(code, environment="analysis", dependencies=("six>=1.17",))


async def test_a_session_keeps_it_and_no_other_can_be_asked_for(engine: SandboxEngine, analysis: Execution) -> None:
    code = "import six; kept = six.__version__"
    await engine.run(code, session_id="in-it", environment="analysis")
    assert await engine.value("kept", "in-it") == "'1.16.0'"
    assert await turn_in(engine, "kept", session_id="in-it", environment="analysis") == "'1.16.0'"
    await engine.sessions.restart(engine.principal, "in-it")
    assert await engine.value("import six; six.__version__", "in-it") == "'1.16.0'"
    assert (await engine.sessions.info(engine.principal, "in-it")).session.environment == "analysis"
    with pytest.raises(InvalidArgumentError) as refused:
        await engine.submit("1", session_id="in-it", environment="another")
    assert refused.value.message == "environment is 'another', and session 'in-it' was made with 'analysis'."


async def test_what_there_is_not_makes_no_session_and_is_the_same_for_what_is_somebody_elses(
    engine: SandboxEngine, analysis: Execution
) -> None:
    told: list[str] = []
    for name in ("analysis", "nothings"):
        asked = ExecutionRequest(script_content="1", sandboxed=True, environment=name, session_id="theirs")
        with pytest.raises(NotFoundError) as refused:
            await engine.executions.submit(SOMEBODY_ELSE, asked)
        told.append(refused.value.sentence().replace(name, "…"))
    assert told[0] == told[1]
    assert await engine.sessions.all_of(SOMEBODY_ELSE) == []


async def test_the_usual_one_is_another_and_a_session_in_it_stays_there(
    engine: SandboxEngine, analysis: Execution
) -> None:
    await engine.run("import importlib.util as u; found = u.find_spec('six')", session_id="usual")
    assert await engine.value("found is None", "usual") == "True"
    with pytest.raises(InvalidArgumentError) as refused:
        await engine.submit("1", session_id="usual", environment="analysis")
    assert refused.value.message == "environment is 'analysis', and session 'usual' was made with the usual one."


async def test_what_no_sandbox_can_run_on_is_refused_in_a_sentence(engine: SandboxEngine, tmp_path: Path) -> None:
    await named(engine, "old", python="3.11")
    with pytest.raises(InvalidArgumentError, match=r"'old' has Python 3\.11\.\d+, and sandboxes need 3\.12") as refused:
        await engine.run("1", environment="old")
    assert f"python_version={PYTHON!r}" in (refused.value.hint or "")
    with pytest.raises(InvalidArgumentError, match=r"python_version asks for '3\.13'"):
        await engine.run("1", environment="old", python_version="3.13", session_id="unmade")
    await named(engine, "beside", f"-e {project(tmp_path / 'lib', 'lib', modules={'lib/__init__.py': ''})}")
    with pytest.raises(InvalidArgumentError, match="lie in projects on this machine, which no sandbox sees"):
        await engine.run("1", environment="beside")
    await named(engine, "aged", "ipython==8.12.3")
    with pytest.raises(InvalidArgumentError, match=r"an older version than sandboxes need of ipython>=8\.18"):
        await engine.run("1", environment="aged")
