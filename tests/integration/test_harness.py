"""What a tool of ours puts around a program, and the files it leaves."""

import sys
from collections.abc import Callable

import pytest

from pyexec.domain.errors import NotFoundError
from pyexec.domain.executions import Execution, Harness
from tests.integration.engine import Engine

MakeEngine = Callable[..., Engine]
LEAVES = """
import os, sys
print(sys.flags.dev_mode, sys.argv[1:])
os.chdir(os.environ["PYEXEC_ARTIFACTS"])
for name, text in (("b.html", "<p>b</p>"), ("a.ipynb", "{}"), (".hidden", "")):
    with open(name, "w") as file: file.write(text)
os.symlink("/etc/passwd", "link.txt"); os.mkfifo("pipe.txt"); os.mkdir("folder")
open("\\n.txt", "w").close()
with open("large.bin", "wb") as file: file.truncate(70 * 2**20)
"""


@pytest.fixture
async def left(make_engine: MakeEngine) -> tuple[Engine, Execution]:
    engine = make_engine()
    harness = Harness(before=("/usr/bin/env", "-u", "GONE"), options=("-X", "dev"))
    return engine, await engine.run(LEAVES, args=("x",), harness=harness)


async def test_a_program_runs_inside_its_harness(left: tuple[Engine, Execution]) -> None:
    engine, execution = left
    assert await engine.stderr(execution) == ""
    assert await engine.stdout(execution) == "True ['x']\n"


async def test_what_it_leaves_is_listed_and_read(left: tuple[Engine, Execution]) -> None:
    engine, execution = left
    found = await engine.executions.artifacts(engine.principal, execution.id)
    assert [(one.name, one.media_type, one.size) for one in found] == [
        ("a.ipynb", "application/x-ipynb+json", 2),
        ("b.html", "text/html", 8),
        ("large.bin", "application/octet-stream", 70 * 2**20),
    ]
    assert await engine.executions.read_artifact(engine.principal, execution.id, "b.html") == b"<p>b</p>"


@pytest.mark.parametrize(
    "name", ["link.txt", "pipe.txt", "folder", ".hidden", "../outcome.json", "/etc/passwd", "", "large.bin", "x" * 5000]
)
async def test_nothing_but_a_file_of_modest_size_is_handed_out(left: tuple[Engine, Execution], name: str) -> None:
    engine, execution = left
    with pytest.raises(NotFoundError, match="has no file"):
        await engine.executions.read_artifact(engine.principal, execution.id, name)


async def test_a_run_without_a_harness_leaves_nothing(make_engine: MakeEngine) -> None:
    engine = make_engine()
    execution = await engine.run("import os; print(os.environ.get('PYEXEC_ARTIFACTS'))")
    assert await engine.stdout(execution) == "None\n"
    assert await engine.executions.artifacts(engine.principal, execution.id) == ()


@pytest.mark.needs_uv
async def test_an_interpreter_that_is_made_first_takes_its_place_behind_what_goes_before(
    make_engine: MakeEngine,
) -> None:
    engine = make_engine()
    harness = Harness(before=(sys.executable, "-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"))
    execution = await engine.run(
        "import sys, iniconfig; print(sys.prefix)", use_uv=True, dependencies=("iniconfig",), harness=harness
    )
    assert await engine.stderr(execution) == ""
    assert str(engine.home / "environments") in await engine.stdout(execution)
