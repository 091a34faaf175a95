"""Which environment a script runs in that lies in a project, and that nothing is ever made in one."""

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from pyexec.environments.interpreters import InterpreterFinder
from pyexec.environments.python_versions import OLDEST
from pyexec.processes.probe import python_version
from tests.integration.environments import SEEN, WHERE, UvEngine, listing, project, uv, write

pytestmark = pytest.mark.needs_uv

PROGRAM = WHERE + (
    "import importlib.metadata as m, importlib.util as u\n"
    "print(*(n for n in ('own', 'six') if u.find_spec(n)), *(d.name + '=' + d.version for d in m.distributions()))\n"
)
WITHOUT_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}
WORKSPACE = "[tool.uv.workspace]\nmembers = ['members/*']\n"


def own_project(folder: Path, more: str = "", dependencies: tuple[str, ...] = ("iniconfig<2.1",)) -> Path:
    project(folder, "own", dependencies, modules={"own.py": "V = 1\n"}, more=more)
    return write(folder, {"main.py": PROGRAM})


def make(kind: str, folder: Path, *, really: bool = True) -> Path:
    """Make a project of some kind, `really` with what it takes to run; return the folder that the script lies in."""
    lock_it = partial(lock, folder, "iniconfig==1.1.1") if really else (folder / "uv.lock").touch
    if kind == "nothing":
        return write(folder, {"main.py": PROGRAM})
    if kind == "virtual environment":
        own_project(folder)
        uv("venv", "--quiet", "--python", sys.executable, ".venv", cwd=folder)
        return folder
    if kind == "pyproject":
        return own_project(folder)
    if kind == "lock":
        own_project(folder)
        lock_it()
        return folder
    member = folder / "members" / "own"
    (folder / ".git").mkdir(parents=True)  # Above it nothing is looked for.
    project(folder, "root", backend=None, more=WORKSPACE)
    own_project(member)
    lock_it()
    return member


def lock(folder: Path, *packages: str) -> None:
    """Lock a project, with these versions of packages rather than the newest."""
    uv("lock", "--quiet", "--python", sys.executable, *(f"--upgrade-package={one}" for one in packages), cwd=folder)


KINDS = ("nothing", "virtual environment", "pyproject", "lock", "workspace")


@pytest.mark.parametrize("kind", KINDS)
async def test_the_environment_that_a_script_in_a_project_runs_in(uv_engine: UvEngine, kind: str) -> None:
    folder = make(kind, uv_engine.directory / "p")
    before = listing(uv_engine.directory)

    request = {"script": "main.py", "directory": str(folder), "env_vars": WITHOUT_BYTECODE}
    prefix, _newline, seen = (await uv_engine.printed_by(**request)).partition("\n")

    ours = Path(prefix).parent == uv_engine.home / "environments"
    assert (ours, seen) == {
        "nothing": (False, seen),
        "virtual environment": (False, ""),  # As it is: somebody has to sync it.
        "pyproject": (True, "own iniconfig=2.0.0"),
        "lock": (True, "own iniconfig=1.1.1"),
        "workspace": (True, "own iniconfig=1.1.1"),
    }[kind]
    if kind == "virtual environment":
        assert prefix == str(folder / ".venv")
    assert listing(uv_engine.directory) == before
    if ours:  # Its own modules are imported from where they lie.
        write(folder, {"src/own.py": "V = 'changed'\n", "main.py": "import own; print(own.V)\n"})
        changed = await uv_engine.run(**request)
        assert await uv_engine.stdout(changed) == "changed\n"
        assert uv_engine.prepared(changed) == []


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("nothing", marks=pytest.mark.exhaustive),
        "virtual environment",
        pytest.param("pyproject", marks=pytest.mark.exhaustive),
        pytest.param("lock", marks=pytest.mark.exhaustive),
        "workspace",
    ],
)
async def test_without_uv_it_is_python_on_the_path_whatever_the_project_has(uv_engine: UvEngine, kind: str) -> None:
    folder = make(kind, uv_engine.directory / "p", really=False)
    before = listing(uv_engine.directory)

    request = {"script": "main.py", "directory": str(folder), "env_vars": WITHOUT_BYTECODE, "use_uv": False}
    prefix = (await uv_engine.printed_by(**request)).partition("\n")[0]

    assert not Path(prefix).is_relative_to(uv_engine.directory)
    assert not Path(prefix).is_relative_to(uv_engine.home)
    assert listing(uv_engine.directory) == before
    assert uv_engine.folders() == []


@pytest.mark.exhaustive
async def test_a_lock_says_exactly_what_is_installed_even_when_it_lags_behind_and_a_new_one_is_seen(
    uv_engine: UvEngine,
) -> None:
    folder = make("lock", uv_engine.directory / "p")
    file = folder / "pyproject.toml"
    file.write_text(file.read_text().replace("iniconfig<2.1", "iniconfig<2.1', 'six"))
    before = listing(folder)

    async def seen() -> str:
        return await uv_engine.printed_by(script="main.py", directory=str(folder), env_vars=WITHOUT_BYTECODE)

    assert (await seen()).endswith("\nown iniconfig=1.1.1")
    assert listing(folder) == before
    lock(folder, "iniconfig==2.0.0")

    assert "\nown six " in await seen()
    assert "iniconfig=2.0.0" in await seen()


async def test_members_of_a_workspace_that_need_each_other_are_found(uv_engine: UvEngine) -> None:
    folder = uv_engine.directory / "p"
    (folder / ".git").mkdir(parents=True)
    project(folder, "root", backend=None, more=WORKSPACE)
    sources = "[tool.uv.sources]\nother = { workspace = true }\n"
    own_project(folder / "members/own", more=sources, dependencies=("other",))
    project(folder / "members/other", "other", ["six"], modules={"other.py": ""})
    lock(folder)
    write(folder / "members/own", {"main.py": SEEN})
    before = listing(folder)

    request = {"script": "main.py", "directory": str(folder / "members/own"), "env_vars": WITHOUT_BYTECODE}
    assert await uv_engine.printed_by(args=["own", "other", "six", "iniconfig"], **request) == "own other six"
    assert listing(folder) == before


@pytest.mark.exhaustive
async def test_a_virtual_environment_whose_python_does_not_fit_is_not_used(uv_engine: UvEngine) -> None:
    folder = make("virtual environment", uv_engine.directory / "p")
    # It says that it is another Python than the script may run on.
    header = "# /// script\n# requires-python = '>=3.8'\n# ///\n"
    write(folder, {"main.py": WHERE, "other.py": header + WHERE})
    home = folder / ".venv"
    request = {"directory": str(folder), "env_vars": WITHOUT_BYTECODE}

    assert await uv_engine.printed_by(script="main.py", python_version=">=3.8", **request) == str(home)
    for given in ({"script": "main.py", "python_version": sys.executable}, {"script": "other.py"}):
        assert await uv_engine.printed_by(**given, **request) != str(home)


async def test_a_virtual_environment_of_another_version_than_asked_for_is_not_used(uv_engine: UvEngine) -> None:
    show = "import sys; print(sys.prefix, '%d.%d' % sys.version_info[:2])\n"
    folder = write(uv_engine.directory / "p", {"main.py": show})
    mine = sys.version_info[:2]
    finder = InterpreterFinder(os.environ, None, python_version, own=Path(sys.executable))
    others = [one.path for one in finder.available() if one.version[:2] != mine and one.version >= OLDEST]
    if not others:
        pytest.skip("there is one version of Python on this machine")
    uv("venv", "--quiet", "--python", str(others[0]), ".venv", cwd=folder)

    printed = await uv_engine.printed_by(script="main.py", directory=str(folder), python_version="{}.{}".format(*mine))

    prefix, version = printed.split()
    assert prefix != str(folder / ".venv")
    assert version == "{}.{}".format(*mine)


async def test_a_broken_virtual_environment_is_passed_over(uv_engine: UvEngine) -> None:
    folder = make("virtual environment", uv_engine.directory / "p")
    python = folder / ".venv/bin/python"
    python.unlink()
    write(folder, {".venv/bin/python": "#!/bin/sh\nexit 1\n"})
    python.chmod(0o755)

    printed = await uv_engine.printed_by(script="main.py", directory=str(folder), env_vars=WITHOUT_BYTECODE)

    assert printed.partition("\n")[2] == "own iniconfig=2.0.0"


@pytest.mark.case("B030")
@pytest.mark.parametrize(
    "content",
    [
        pytest.param("[tool.ruff]\nline-length = 100\n", id="no-project", marks=pytest.mark.exhaustive),
        pytest.param("[project]\nname = 'x'\nversion = '1'\ndependencies = ['iniconfig']\n", id="project"),
        pytest.param(
            "[project]\nname = 'x'\ndynamic = ['version', 'dependencies']\n[build-system]\nrequires = ['setuptools']\n",
            id="dynamic",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("[project\n", id="damaged"),
        pytest.param("[tool.uv]\nrequired-version = '>=99'\n", id="other-uv", marks=pytest.mark.exhaustive),
        pytest.param("[tool.uv]\nmanaged = 3\n", id="wrong-type", marks=pytest.mark.exhaustive),
    ],
)
async def test_inline_code_is_untouched_by_the_project_around_it(
    uv_engine: UvEngine, tmp_path: Path, content: str
) -> None:
    write(uv_engine.directory, {"pyproject.toml": content, "setup.py": "import setuptools; setuptools.setup()\n"})
    before = listing(uv_engine.directory)
    uv("venv", "--quiet", "--python", sys.executable, str(tmp_path / "bare"), cwd=tmp_path)
    bare = str(tmp_path / "bare/bin/python")

    execution = await uv_engine.run("import sys; print(1)\n" + SEEN, args=["iniconfig"], python_version=bare)

    assert (await uv_engine.stdout(execution), await uv_engine.stderr(execution)) == ("1\n\n", "")
    assert listing(uv_engine.directory) == before


async def test_inline_code_does_not_take_the_virtual_environment_of_its_directory(uv_engine: UvEngine) -> None:
    folder = make("virtual environment", uv_engine.directory / "p")

    assert await uv_engine.printed_by(WHERE, directory=str(folder)) != str(folder / ".venv")
