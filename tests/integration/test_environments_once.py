"""An environment is made once, whoever asks for it, and found by all servers from then on."""

import anyio
import pytest

from pyexec.domain.executions import Execution
from tests.helpers.processes import eventually
from tests.integration.conftest import MakeUvEngine
from tests.integration.environments import SEEN, SHOW, Gate, UvEngine, project

pytestmark = pytest.mark.needs_uv


async def test_what_was_made_once_is_there_at_once_for_every_server(make_uv_engine: MakeUvEngine) -> None:
    one, other = make_uv_engine(), make_uv_engine()
    request = {"dependencies": ["iniconfig==2.0.0", "six"], "args": ["iniconfig"]}

    cold = await one.run(SHOW, **request)
    warm = [await one.run(SHOW, **request), await other.run(SHOW, **request)]

    answers = [await one.answer(execution) for execution in (cold, *warm)]
    assert [await one.stdout(execution) for execution in (cold, *warm)] == ["iniconfig=2.0.0\n"] * 3
    assert len({answer.digest for answer in answers}) == 1
    assert [answer.packages for answer in answers] == [answers[0].packages] * 3
    assert any(line.startswith("installing 2 packages") for line in one.prepared(cold))
    assert [one.prepared(execution) for execution in warm] == [[], []]
    assert one.complete() == [answers[0].digest]


async def test_four_that_ask_at_once_on_two_servers_get_one_that_is_made_once(
    make_uv_engine: MakeUvEngine, gate: Gate
) -> None:
    engines = [make_uv_engine(), make_uv_engine()] * 2
    started: list[Execution] = []

    async def start(engine: UvEngine) -> None:
        started.append(await engine.submit(SEEN, dependencies=[str(gate.project), "iniconfig"], args=["gated"]))

    async with anyio.create_task_group() as tasks:
        for engine in engines:
            tasks.start_soon(start, engine)
    for execution in started:  # Each hears what the one that builds is doing.
        eventually(lambda each=execution: "building gated" in engines[0].prepared(each))
    assert engines[0].complete() == []
    gate.open()
    ended = [await engines[0].wait(execution) for execution in started]

    assert [execution.state for execution in ended] == ["completed"] * 4
    assert [await engines[0].stdout(execution) for execution in ended] == ["gated\n"] * 4
    assert len(gate.begun()) == 1
    assert len({(await engines[0].answer(execution)).digest for execution in ended}) == 1
    assert engines[0].folders() == engines[0].complete()


@pytest.mark.exhaustive
async def test_different_requests_that_resolve_to_the_same_share_an_environment(uv_engine: UvEngine) -> None:
    first = await uv_engine.run("", dependencies=["six", "iniconfig==2.0.0"])
    other = await uv_engine.run("", dependencies=["iniconfig<2.0.1", "iniconfig>=2", "six"])
    in_another_order = await uv_engine.run("", dependencies=["iniconfig==2.0.0", "six"])

    digests = {(await uv_engine.answer(one)).digest for one in (first, other, in_another_order)}
    assert len(digests) == 1
    assert digests != {None}
    assert not [line for line in uv_engine.prepared(other) if "installing" in line]
    assert uv_engine.prepared(in_another_order) == []


@pytest.mark.exhaustive
async def test_making_one_is_not_held_up_by_another(uv_engine: UvEngine, gate: Gate) -> None:
    slow = await uv_engine.submit("print('slow')", dependencies=[str(gate.project)])
    gate.wait()

    assert await uv_engine.printed_by("import iniconfig; print('quick')", dependencies=["iniconfig"]) == "quick"

    gate.open()
    assert (await uv_engine.wait(slow)).state == "completed"


async def test_what_is_installed_is_compiled_already(uv_engine: UvEngine) -> None:
    code = "import iniconfig, os; print(os.path.exists(iniconfig.__cached__))"

    printed = await uv_engine.printed_by(
        code, dependencies=["iniconfig==2.0.0", "six"], env_vars={"PYTHONDONTWRITEBYTECODE": "1"}
    )

    assert printed == "True"


async def test_progress_can_be_watched(uv_engine: UvEngine, gate: Gate) -> None:
    execution = await uv_engine.submit("", dependencies=[str(gate.project)])
    gate.wait()

    assert (await uv_engine.get(execution)).state == "pending"
    assert await uv_engine.executions.preparing(execution) == "building gated"

    gate.open()
    ended = await uv_engine.wait(execution)
    assert await uv_engine.stdout(ended) == ""
    told = uv_engine.prepared(ended)
    assert told[0] == "resolving 1 requirement"
    assert told[1].startswith("resolved 1 package in ")
    assert told[2:4] == ["building gated", "installing 1 package"]
    assert told[-1] == "ready"


@pytest.mark.case("B034")
@pytest.mark.exhaustive
async def test_two_projects_side_by_side_never_see_each_others_packages(uv_engine: UvEngine) -> None:
    for name, version in (("a", "2.0.0"), ("b", "1.1.1")):
        folder = uv_engine.directory / name
        project(folder, name, [f"iniconfig=={version}"], modules={f"{name}_only.py": ""})
        (folder / "main.py").write_text(SEEN + SHOW.replace("sys.argv[1:]", "['iniconfig']"))
    seen: list[tuple[str, str]] = []

    async def run(name: str) -> None:
        given = {"script": "main.py", "directory": str(uv_engine.directory / name), "args": ["a_only", "b_only"]}
        seen.append((name, await uv_engine.printed_by(**given)))

    for times in (1, 9):
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b") * times:
                tasks.start_soon(run, name)

    assert sorted(set(seen)) == [("a", "a_only\niniconfig=2.0.0"), ("b", "b_only\niniconfig=1.1.1")]
    assert len(seen) == 20
    assert len(uv_engine.complete()) == 2
