"""Packages that lie on this machine: a change in one is seen, and nothing is made in the folder they lie in."""

import os
import subprocess
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.integration.engine import outcome_of
from tests.integration.environments import SEEN, SHOW, UvEngine, listing, make_wheel, origin, project, write

pytestmark = pytest.mark.needs_uv

VALUE = "import lpkg; print(lpkg.V)\n"
SETUP = """\
from setuptools import setup
import os, sys
sys.path.insert(0, os.getcwd())
import lpkg
setup(name="lpkg", version=lpkg.computed, packages=["lpkg"], install_requires=open("needs.txt").read().split())
"""
BACKEND = """\
[project]
name = "lpkg"
version = "1"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


@pytest.fixture
def package(uv_engine: UvEngine) -> Path:
    return project(uv_engine.directory / "lp", "lpkg", modules={"lpkg/__init__.py": "V = 1\n"})


@pytest.mark.case("B031")
async def test_a_changed_local_package_is_seen(uv_engine: UvEngine, package: Path) -> None:
    needs = "dependencies = ['iniconfig']\n"
    assert await uv_engine.printed_by(VALUE, dependencies=["./lp"]) == "1"
    (package / "src/lpkg/__init__.py").write_text("V = 22\n")

    assert await uv_engine.printed_by(VALUE + SEEN, dependencies=["./lp"], args=["iniconfig"]) == "22"
    file = package / "pyproject.toml"
    file.write_text(file.read_text().replace("dependencies = []\n", needs))

    assert await uv_engine.printed_by(VALUE + SEEN, dependencies=["./lp"], args=["iniconfig"]) == "22\niniconfig"


async def test_an_unchanged_local_package_is_not_built_again(uv_engine: UvEngine, package: Path) -> None:
    before = listing(package)
    first = await uv_engine.run(VALUE, dependencies=["./lp"])
    second = await uv_engine.run(VALUE, dependencies=["./lp"])

    assert listing(package) == before
    assert "building lpkg" in uv_engine.prepared(first)
    assert uv_engine.prepared(second) == []
    answer = await uv_engine.answer(second)
    assert answer.packages == (f"lpkg @ file://{package}",)
    assert answer.digest is not None
    assert origin(uv_engine, answer.digest, "lpkg") == {"url": f"file://{package}", "dir_info": {}}


async def test_a_change_in_an_editable_one_is_seen_without_a_build(uv_engine: UvEngine, package: Path) -> None:
    before = listing(package)
    first = await uv_engine.run(VALUE, dependencies=["-e ./lp"], env_vars={"PYTHONDONTWRITEBYTECODE": "1"})
    assert listing(package) == before
    (package / "src/lpkg/__init__.py").write_text("V = 22\n")
    second = await uv_engine.run(VALUE + SHOW, dependencies=["-e ./lp"], args=["lpkg"])

    assert (await uv_engine.stdout(first), await uv_engine.stdout(second)) == ("1\n", "22\nlpkg=1\n")
    assert uv_engine.prepared(second) == []
    digest = (await uv_engine.answer(second)).digest
    assert digest is not None
    assert origin(uv_engine, digest, "lpkg")["dir_info"] == {"editable": True}


@pytest.mark.exhaustive
async def test_nothing_is_made_in_the_folder_of_a_local_package_whatever_builds_it(uv_engine: UvEngine) -> None:
    for backend in ("setuptools", "flit_core", "hatchling"):
        project(uv_engine.directory / backend, backend[:4], modules={f"{backend[:4]}/__init__.py": ""}, backend=backend)
    before = listing(uv_engine.directory)

    async with anyio.create_task_group() as tasks:
        for backend, kind in (("setuptools", ""), ("flit_core", "-e "), ("hatchling", "")):
            # The program itself would leave `__pycache__` in what it imports from its source.
            code = f"import {backend[:4]}, sys; assert sys.dont_write_bytecode"
            given = {"dependencies": [f"{kind}./{backend}"], "env_vars": {"PYTHONDONTWRITEBYTECODE": "1"}}
            tasks.start_soon(partial(uv_engine.printed_by, code, **given))

    assert listing(uv_engine.directory) == before


@pytest.mark.exhaustive
async def test_what_only_the_build_knows_is_asked_of_it_and_nothing_is_left_behind(uv_engine: UvEngine) -> None:
    module = "V = 1\ncomputed = '.'.join(['4', '2'])\n"  # Only by importing it its version is known.
    folder = write(
        uv_engine.directory / "lp",
        {"setup.py": SETUP, "needs.txt": "six\n", "lpkg/__init__.py": module},
    )
    before = listing(folder)

    printed = await uv_engine.printed_by(
        SHOW + SEEN,
        dependencies=["-e ./lp"],
        args=["lpkg", "six"],
        env_vars={"PYTHONDONTWRITEBYTECODE": "1"},
    )

    assert printed.startswith("lpkg=4.2 six=1.")
    assert printed.endswith("\nlpkg six")
    assert listing(folder) == before


async def test_a_build_backend_of_the_projects_own_leaves_nothing_behind(uv_engine: UvEngine) -> None:
    folder = uv_engine.directory / "lp"
    wheel = make_wheel(uv_engine.home.parent, "lpkg", "1", {"lpkg.py": "V = 1\n"})
    backend = "import os, shutil\ndef build_wheel(to, *rest): return os.path.basename(shutil.copy(%r, to))\n"
    write(folder, {"pyproject.toml": BACKEND, "backend.py": backend % str(wheel)})
    before = listing(folder)

    assert await uv_engine.printed_by(VALUE, dependencies=["./lp"]) == "1"
    assert listing(folder) == before


async def test_a_local_wheel_is_installed_from_a_path_with_spaces_and_a_change_is_seen(uv_engine: UvEngine) -> None:
    folder = uv_engine.directory / "my wheels"
    folder.mkdir()
    wheel = make_wheel(folder, "lpkg", "1", {"lpkg.py": "V = 1\n"})
    request = {"dependencies": ["./my wheels/lpkg-1-py3-none-any.whl"]}
    assert await uv_engine.printed_by(VALUE, **request) == "1"
    make_wheel(folder, "lpkg", "1", {"lpkg.py": "V = 'changed'\n"})
    os.utime(wheel)

    assert await uv_engine.printed_by(VALUE, **request) == "changed"


@pytest.mark.exhaustive
async def test_a_local_package_may_be_named_by_a_file_url_and_have_extras(uv_engine: UvEngine) -> None:
    folder = uv_engine.directory / "lp"
    extras = "[project.optional-dependencies]\nmore = ['iniconfig']\n"
    project(folder, "lpkg", modules={"lpkg/__init__.py": "V = 1\n"}, more=extras)

    args = ["lpkg", "iniconfig"]
    by_url = await uv_engine.run(SEEN, dependencies=[f"lpkg[more] @ file://{folder}"], args=args)
    by_path = await uv_engine.run(SEEN, dependencies=["./lp[more]"], args=args)

    assert [await uv_engine.stdout(one) for one in (by_url, by_path)] == ["lpkg iniconfig\n"] * 2


async def test_a_build_that_fails_is_said_with_the_package_and_all_that_it_told(uv_engine: UvEngine) -> None:
    backend = "def build_wheel(*given): raise SystemExit('no compiler for you')\n"
    folder = write(uv_engine.directory / "lp", {"pyproject.toml": BACKEND, "backend.py": backend})
    before = listing(folder)

    execution = await uv_engine.run("print('ran')", dependencies=["./lp"])

    outcome = outcome_of(execution)
    assert outcome.reason == (f"Failed to build `{folder}`: Call to `backend.build_wheel` failed (exit status: 1).")
    assert outcome.detail is not None
    assert "no compiler for you" in outcome.detail
    assert uv_engine.folders() == []
    assert listing(folder) == before


@pytest.mark.exhaustive
async def test_a_repository_is_installed_at_a_commit_and_the_result_says_which(uv_engine: UvEngine) -> None:
    folder = project(uv_engine.directory / "repo", "lpkg", modules={"lpkg/__init__.py": "V = 1\n"})
    commit = commit_all(folder)
    before = listing(folder)

    execution = await uv_engine.run(VALUE, dependencies=[f"lpkg @ git+file://{folder}"])

    assert await uv_engine.stdout(execution) == "1\n"
    assert (await uv_engine.answer(execution)).packages == (f"lpkg @ git+file://{folder}@{commit}",)
    assert listing(folder) == before


def commit_all(folder: Path) -> str:
    """Put a folder into a repository of its own; return the commit."""

    def git(*arguments: str) -> str:
        person = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *person, *arguments], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message=first")
    return git("rev-parse", "HEAD")
