"""The environment that a notebook runs in; what runs it there is a stand-in that tells what it sees."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.helpers.notebooks import write_notebook
from tests.integration.environments import Index, UvEngine, listing, package_index, project, uv, wheel_bytes

pytestmark = pytest.mark.needs_uv

STAND_IN = """
import importlib.metadata as m, importlib.util as u, sys
print(*(name for name in ("editable", "ipykernel", "shared", "theirs") if u.find_spec(name)))
print(*sorted(f"{one.name}={one.version}" for one in m.distributions()))
sys.exit(0)
"""


@pytest.fixture
def index() -> Iterator[Index]:
    """An index with what notebooks are run with; `nbclient` is none, and needs `shared`."""
    with package_index() as index:
        index.files["nbclient-1-py3-none-any.whl"] = wheel_bytes("nbclient", "1", {"nbclient.py": STAND_IN}, ["shared"])
        index.add("ipykernel", "1")
        index.add("shared", "1")
        yield index


async def test_a_virtual_environment_without_a_kernel_is_seen_all_the_same_and_stays_as_it_is(
    uv_engine: UvEngine, index: Index
) -> None:
    folder = uv_engine.directory
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=folder, check=True)
    (site,) = folder.glob(".venv/lib/python*/site-packages")
    (site / "theirs.py").touch()
    (site / "theirs-7.dist-info").mkdir()
    (site / "theirs-7.dist-info" / "METADATA").write_text("Name: theirs\nVersion: 7\n")
    (folder / "source").mkdir()
    (folder / "source" / "editable.py").touch()
    (site / "editable.pth").write_text(f"{folder / 'source'}\n")
    write_notebook(folder / "x.ipynb", "1")
    before = listing(folder)
    execution = await uv_engine.wait(await uv_engine.submit(script="x.ipynb", index_url=f"{index.url}/simple"))
    assert await uv_engine.stdout(execution) == (
        "editable ipykernel shared theirs\nipykernel=1 nbclient=1 shared=1 theirs=7\n"
    )
    note, _kept = execution.notes
    assert note.startswith(f"{folder / '.venv'} has no nbclient and no ipykernel, so it ran in an environment")
    assert listing(folder) == before


async def test_a_virtual_environment_with_a_kernel_is_used_as_it_is(uv_engine: UvEngine, index: Index) -> None:
    folder = uv_engine.directory
    uv("venv", "--quiet", "--python", sys.executable, ".venv", cwd=folder)
    uv(
        "pip",
        "install",
        "--quiet",
        "--python",
        ".venv/bin/python",
        "--index-url",
        f"{index.url}/simple",
        "nbclient",
        "ipykernel",
        cwd=folder,
    )
    write_notebook(folder / "x.ipynb", "1")
    execution = await uv_engine.wait(await uv_engine.submit(script="x.ipynb"))
    assert await uv_engine.stdout(execution) == "ipykernel shared\nipykernel=1 nbclient=1 shared=1\n"
    assert execution.python == str(folder / ".venv" / "bin" / "python")
    assert uv_engine.folders() == []


@pytest.mark.exhaustive
async def test_a_locked_project_keeps_its_versions_and_gets_what_else_is_needed(
    uv_engine: UvEngine, index: Index
) -> None:
    folder = uv_engine.directory / "p"
    settings = f"[[tool.uv.index]]\nurl = '{index.url}/simple'\ndefault = true\n"
    project(folder, "own", ["shared"], backend=None, more=settings)
    uv("lock", "--quiet", "--python", sys.executable, cwd=folder)
    index.add("shared", "2")
    write_notebook(folder / "x.ipynb", "1")
    before = listing(folder)
    execution = await uv_engine.wait(await uv_engine.submit(script="x.ipynb", directory=str(folder)))
    assert await uv_engine.stdout(execution) == "ipykernel shared\nipykernel=1 nbclient=1 shared=1\n"
    assert (await uv_engine.answer(execution)).packages == ("ipykernel==1", "nbclient==1", "shared==1")
    assert listing(folder) == before
