from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.environments.asking import RunPlan
from tests.unit.environments.bench import Bench
from tests.unit.environments.conftest import Machine, Write

PROJECT = "[project]\nname = 'x'\nversion = '1'\ndependencies = ['rich']\nrequires-python = '>=3.12'\n"
EMPTY_HEADER = b"# /// script\n# dependencies = []\n# ///\n"


class ProjectBench(Bench):
    """A bench whose folder may have a `.venv`."""

    def venv(self, version: tuple[int, int, int] | None = (3, 11, 7), *, folder: Path | None = None) -> Path:
        python = (folder or self.directory) / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(self.python)
        self.machine.versions[python] = version
        return python


@pytest.fixture
def bench(machine: Machine, tmp_path: Path) -> ProjectBench:
    return ProjectBench(machine, tmp_path)


def test_the_project_a_script_lies_in_gives_its_packages_and_its_range(bench: ProjectBench, write: Write) -> None:
    file = write("work/pyproject.toml", PROJECT)
    order = bench.order()
    assert (order.requirements, order.python, order.paths) == (("rich",), str(bench.newer), ())
    with pytest.raises(InvalidArgumentError, match=f"does not fit requires-python '>=3.12' in {file}"):
        bench.plan(python_version="3.11")


@pytest.mark.parametrize("table", ["[build-system]\nrequires = ['hatchling']\n", "[tool.uv]\npackage = true\n"])
def test_the_modules_of_a_project_that_is_a_package_are_imported_from_where_they_lie(
    bench: ProjectBench, write: Write, table: str
) -> None:
    write("work/pyproject.toml", PROJECT + table)
    write("work/src/x/__init__.py", "")
    order = bench.order()
    assert (order.requirements, order.paths) == (("rich",), (str(bench.directory / "src"),))
    write("work/pyproject.toml", "[project]\nname = 'x'\n" + table)
    assert (bench.order()).requirements == ()


@pytest.mark.case("B030")
def test_inline_code_a_header_and_packages_of_the_calls_own_leave_the_project_out(
    bench: ProjectBench, write: Write
) -> None:
    write("work/pyproject.toml", PROJECT)
    write("work/uv.lock", "")
    assert bench.plan(project=False) == RunPlan(
        argv=(str(bench.python), "main.py"),
        strategy="uv-run",
        python=str(bench.python),
        python_version="3.11.7",
        packages=(),
        first_on_path=bench.python.parent,
    )
    for changes in ({"dependencies": ("numpy",)}, {"header_source": EMPTY_HEADER}, {"keep_as": "tools"}):
        order = bench.order(**changes)
        assert (order.project, order.requirements) == (None, changes.get("dependencies", ()))


@pytest.mark.case("B030")
@pytest.mark.parametrize("content", ["[tool.ruff]\n", "[project]\nname = 'x'\n", "[project\n"])
def test_a_project_that_asks_for_nothing_changes_nothing(bench: ProjectBench, write: Write, content: str) -> None:
    write("work/pyproject.toml", content)
    plan = bench.plan()
    assert (plan.prepare, plan.python) == (None, str(bench.python))


def test_members_of_a_workspace_without_a_lock_are_noted(bench: ProjectBench, write: Write) -> None:
    file = write(
        "work/pyproject.toml",
        "[project]\ndependencies = ['rich', 'mine']\n[tool.uv.sources]\nmine = {workspace = true}\n",
    )
    assert (bench.order()).requirements == ("rich",)
    assert (bench.plan()).notes == (
        f"mine is in the workspace of {file}, which has no uv.lock, and was not installed.",
    )


def test_sources_of_a_project_that_lie_beside_it_are_installed_from_there(
    bench: ProjectBench, write: Write, tmp_path: Path
) -> None:
    write("lib/pyproject.toml", "")
    write("own/pyproject.toml", "")
    write(
        "work/pyproject.toml",
        "[project]\ndependencies = ['lib', 'own[x]']\n[tool.uv.sources]\nlib = {path = '../lib'}\n"
        "own = {path = '../own', editable = true}\n",
    )
    order = bench.order()
    assert order.requirements == (f"lib @ file://{tmp_path}/lib", f"file://{tmp_path}/own[x]")
    assert order.editables == (f"{tmp_path}/own",)


def test_a_fault_in_a_projects_requirements_names_its_file(bench: ProjectBench, write: Write) -> None:
    file = write("work/pyproject.toml", "[project]\ndependencies = ['?']\n")
    with pytest.raises(InvalidArgumentError, match=f"in {file} cannot be read"):
        bench.plan()


# -- a lock --------------------------------------------------------------------------------------------------------


def test_a_lock_of_the_project_says_it_all(bench: ProjectBench, write: Write) -> None:
    write("work/pyproject.toml", PROJECT.replace("'rich'", "'?', 'mine'"))
    lock = write("work/uv.lock", "")
    order = bench.order()
    assert (order.project, order.project_lock) == (str(bench.directory), str(lock))
    assert (order.requirements, order.paths, order.python) == ((), (), str(bench.newer))


def test_the_lock_of_the_workspace_counts_for_its_members(bench: ProjectBench, write: Write) -> None:
    write("work/.git", "")
    write("work/pyproject.toml", "[tool.uv.workspace]\nmembers = ['packages/*']\n")
    lock = write("work/uv.lock", "")
    write("work/packages/one/pyproject.toml", PROJECT)
    order = bench.order(directory=bench.directory / "packages" / "one")
    assert (order.project, order.project_lock) == (str(bench.directory / "packages" / "one"), str(lock))


def test_a_lock_is_followed_though_there_is_an_environment_of_the_projects_own(
    bench: ProjectBench, write: Write
) -> None:
    write("work/pyproject.toml", PROJECT)
    write("work/uv.lock", "")
    bench.venv((3, 13, 0))
    assert (bench.order()).project == str(bench.directory)


def test_a_changed_lock_is_another_request(bench: ProjectBench, write: Write) -> None:
    write("work/pyproject.toml", PROJECT)
    write("work/uv.lock", "")
    before = (bench.order()).key
    write("work/uv.lock", "version = 1\n")
    assert (bench.order()).key != before


# -- an environment of the project's own ---------------------------------------------------------------------------


@pytest.mark.parametrize("content", [None, PROJECT])
def test_an_environment_of_the_projects_own_is_used_as_it_is(
    bench: ProjectBench, write: Write, content: str | None
) -> None:
    if content is not None:
        write("work/pyproject.toml", content)
    python = bench.venv((3, 12, 1))
    assert bench.plan() == RunPlan(
        argv=(str(python), "main.py"),
        strategy="uv-run",
        python=str(python),
        python_version="3.12.1",
        first_on_path=python.parent,
    )


def test_an_environment_above_counts_up_to_the_repository(bench: ProjectBench, write: Write) -> None:
    inner = bench.directory / "inner"
    inner.mkdir()
    python = bench.venv()
    assert (bench.plan(directory=inner)).python == str(bench.python)
    write("work/.git", "")
    assert (bench.plan(directory=inner)).python == str(python)


@pytest.mark.parametrize(
    "changes",
    [
        {"project": False},
        {"header_source": EMPTY_HEADER},
        {"dependencies": ("numpy",)},
        {"keep_as": "tools"},
        {"use_uv": False},
        {"python_version": "3.13"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_environment_of_the_projects_own_is_passed_over_by_what_does_not_want_it(
    bench: ProjectBench, changes: dict[str, Any]
) -> None:
    python = bench.venv()
    assert (bench.plan(**changes)).python != str(python)


def test_an_environment_outside_of_the_projects_range_is_passed_over(bench: ProjectBench, write: Write) -> None:
    write("work/pyproject.toml", PROJECT)
    bench.venv((3, 11, 7))
    assert (bench.order()).python == str(bench.newer)


def test_an_environment_that_does_not_work_is_passed_over(bench: ProjectBench) -> None:
    bench.venv(None)
    assert (bench.plan()).python == str(bench.python)


def test_an_environment_is_used_by_a_call_that_asks_for_its_version(bench: ProjectBench) -> None:
    python = bench.venv((3, 12, 1))
    for version in ("3.12", ">=3.10", "3.12.1"):
        assert (bench.plan(python_version=version)).python == str(python)
    with pytest.raises(InvalidArgumentError, match="python_version is 'x'"):
        bench.plan(python_version="x")
    assert (bench.plan(python_version=str(bench.newer))).python == str(bench.newer)
