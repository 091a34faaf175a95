"""Packages in sandboxes: what a call names, and what is given to a session that lives."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyexec.domain.errors import InvalidArgumentError, NotFoundError, PackagesUnavailableError
from tests.integration.environments import Index, package_index
from tests.integration.packages import offer
from tests.integration.sandboxes import SETTINGS, SandboxEngine

pytestmark = [pytest.mark.needs_uv, pytest.mark.root]


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with package_index() as made:
        yield made


@pytest.fixture(scope="module")
def engine(module_home: Path, index: Index) -> Iterator[SandboxEngine]:
    """An engine whose packages come from the usual index, and from one of the test's own before that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_INDEX", f"{index.url}/simple")
        with SandboxEngine(module_home, **SETTINGS) as made:
            yield made


async def test_a_call_has_the_packages_that_it_names(engine: SandboxEngine, index: Index) -> None:
    offer(index, "givenlib", files={"givenlib/__init__.py": "VALUE = 42\n"}, requires=["givendep"])
    offer(index, "givendep")
    code = "import givenlib, givendep; givenlib.VALUE, givenlib.__file__, bool(givenlib.__cached__)"
    for found in (False, True):
        execution = await engine.run(code, dependencies=("givenlib",))
        turn = await engine.executions.turn_of(execution)
        assert turn is not None, (execution.outcome, engine.prepared(execution))
        assert turn.value == "(42, '/packages/givenlib/__init__.py', True)"
        answer = await engine.answer(execution)
        assert {"givenlib==1", "givendep==1"} <= set(answer.packages or ())
        assert any(one.startswith("ipython==") for one in answer.packages or ())
        assert (engine.prepared(execution) == []) == found
    assert await engine.value("import importlib.util as u; u.find_spec('givenlib') is None") == "True"


async def test_what_is_given_cannot_be_written_to_nor_take_the_place_of_what_is_there(
    engine: SandboxEngine, index: Index
) -> None:
    offer(index, "shadowing", files={"shadowing.py": "", "json.py": "raise SystemError", "IPython.py": "x = 1"})
    code = """
import json, IPython, os, shadowing, sys
read_only = bool(os.statvfs("/packages").f_flag & os.ST_RDONLY)
os.access(shadowing.__file__, os.W_OK), read_only, json.dumps(1), IPython.__name__, sys.path[-1]
"""
    turn = await engine.executions.turn_of(await engine.run(code, dependencies=("shadowing",)))
    assert turn is not None
    assert turn.value == "(False, True, '1', 'IPython', '/packages')"


async def test_what_does_not_go_with_what_is_there_is_refused_before_anything_runs(engine: SandboxEngine) -> None:
    await engine.value("1")
    with pytest.raises(InvalidArgumentError, match=r"'ipython<3' was asked for, and sandboxes have ipython [\d.]+ alr"):
        await engine.submit("1", dependencies=("ipython<3",))


async def test_packages_come_to_a_live_session_without_a_restart(engine: SandboxEngine, index: Index) -> None:
    offer(index, "lateone", files={"lateone.py": "VALUE = 1\n", "lateone.pth": "import nothing_there\n"})
    offer(index, "latetwo", files={"latespace/two/__init__.py": "VALUE = 2\n"})
    offer(index, "latethree", files={"latespace/three/__init__.py": "VALUE = 3\n"})
    packages = engine.services.session_packages
    assert packages is not None
    failing = "kept = 7\ntry:\n    import lateone\nexcept ModuleNotFoundError as error:\n    told = error.name\ntold"
    assert await engine.value(failing, "late") == "'lateone'"
    made = await packages.install(engine.principal, "late", ("lateone", "latetwo"))
    assert dict(made.installed) == {"lateone": "1", "latetwo": "1"}
    assert await engine.value("import lateone, latespace.two; lateone.VALUE, latespace.two.VALUE, kept", "late") == (
        "(1, 2, 7)"
    )
    await packages.install(engine.principal, "late", ("latethree",))
    assert await engine.value("import latespace.three as three; three.VALUE", "late") == "3"
    assert (await packages.install(engine.principal, "late", ("lateone",))).packages == ()
    told = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import lateone; print(lateone.VALUE)']);"
    execution = await engine.run(f"{told} import importlib.metadata as m; m.version('latethree')", session_id="late")
    turn = await engine.executions.turn_of(execution)
    assert (await engine.stdout(execution), turn and turn.value) == ("1\n", "'1'")
    await engine.sessions.restart(engine.principal, "late")
    assert await engine.value("import lateone; lateone.VALUE", "late") == "1"


async def test_a_turn_of_a_session_has_the_packages_that_it_names_and_so_have_the_next(
    engine: SandboxEngine, index: Index
) -> None:
    offer(index, "turnone")
    offer(index, "turntwo", requires=["turnone"])
    for name in ("turnone", "turntwo"):
        execution = await engine.run(f"import {name}; {name}.VERSION", session_id="turns", dependencies=(name,))
        turn = await engine.executions.turn_of(execution)
        assert turn is not None, (execution.outcome, engine.prepared(execution))
        assert turn.value == "'1'"
    assert await engine.value("import turnone, turntwo; 'both'", "turns") == "'both'"
    # Ready by now, for another session as well.
    execution = await engine.run("import turntwo", session_id="others", dependencies=("turntwo",))
    assert execution.state == "completed"


async def test_what_is_imported_is_never_exchanged(engine: SandboxEngine, index: Index) -> None:
    offer(index, "stable", "1")
    packages = engine.services.session_packages
    assert packages is not None
    await engine.run("import stable", session_id="stable", dependencies=("stable",))
    offer(index, "stable", "2")
    with pytest.raises(InvalidArgumentError, match="this session has stable 1 already"):
        await packages.install(engine.principal, "stable", ("stable==2",))
    assert await engine.value("import stable; stable.VERSION", "stable") == "'1'"


async def test_a_session_that_does_not_live_or_is_somebody_elses_is_given_nothing(engine: SandboxEngine) -> None:
    packages = engine.services.session_packages
    assert packages is not None
    with pytest.raises(NotFoundError, match="no session 'nobodys'"):
        await packages.install(engine.principal, "nobodys", ("x",))
    await engine.value("1", "over")
    await engine.sessions.restart(engine.principal, "over")
    with pytest.raises(PackagesUnavailableError, match="'over' does not live"):
        await packages.install(engine.principal, "over", ("x",))


@pytest.mark.parametrize(
    "code",
    [
        "%pip install six",
        "!pip install six",
        "!cd /tmp && python3 -m pip install six",
        "!uv pip install six",
        "!PIP_NO_INPUT=1 /usr/bin/pip3 install --quiet six",
        "found = !pip install six",
        "import pip; pip.main(['install', 'six'])",
    ],
)
async def test_installing_from_inside_a_cell_ends_in_a_sentence_that_names_the_tool(
    engine: SandboxEngine, code: str
) -> None:
    turn = await engine.executions.turn_of(await engine.run(code, session_id="installing"))
    assert turn is not None
    assert turn.failure is not None
    assert turn.failure.type == "UsageError"
    assert "dependencies= of execute_python" in turn.failure.message
    assert "install_packages" in turn.failure.message


async def test_other_commands_run_as_ever(engine: SandboxEngine) -> None:
    execution = await engine.run("!echo 'a; pip install b' && echo pip install c\n!echo uv", session_id="installing")
    assert await engine.stdout(execution) == "a; pip install b\npip install c\nuv\n"


IN_A_PROCESS = """
import os, shutil, subprocess, sys
def said(*command):
    ran = subprocess.run(command, capture_output=True, text=True)
    return ran.returncode, "tool install_packages" in ran.stderr, ran.stdout[:4]
found = {
    "module": said(sys.executable, "-m", "pip", "install", "six"),
    "shell": said("sh", "-c", f"{sys.executable} -m pip --quiet install six"),
    "command": said(shutil.which("pip") or "false", "install", "six") if shutil.which("pip") else (1, True, ""),
    "other": said(sys.executable, "-m", "pip", "--version"),
    "imported": said(sys.executable, "-c", "import pip._internal; print(pip.__name__, pip.__file__)"),
}
"""


async def test_pip_in_a_process_that_a_cell_starts_says_it_too_and_is_itself_otherwise(engine: SandboxEngine) -> None:
    await engine.run(IN_A_PROCESS, session_id="processes")
    found = "[found[name] for name in ('module', 'shell', 'command')]"
    assert await engine.value(found, "processes") == "[(1, True, ''), (1, True, ''), (1, True, '')]"
    assert await engine.value("[found['other'], found['imported']]", "processes") == (
        "[(0, False, 'pip '), (0, False, 'pip ')]"
    )
    assert await engine.value("os.system('python3 -m pip install six') != 0", "processes") == "True"
