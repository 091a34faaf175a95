"""Packages that a program is run with, besides those that it asks for itself."""

from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import InvalidArgumentError
from tests.unit.environments.bench import Bench
from tests.unit.environments.conftest import Machine, Write

TOOLS = ("nbclient", "ipykernel")
DIGEST = "a" * 32
PROJECT = "[project]\nname = 'x'\nversion = '1'\ndependencies = ['rich']\n"


@pytest.fixture
def bench(machine: Machine, tmp_path: Path) -> Bench:
    return Bench(machine, tmp_path)


def venv(bench: Bench, *packages: str) -> Path:
    """Make a `.venv` with these packages in it; return where they lie."""
    python = bench.directory / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(bench.python)
    bench.machine.versions[python] = (3, 11, 7)
    site = bench.directory / ".venv" / "lib" / "python3.11" / "site-packages"
    for package in packages:
        (site / f"{package}-1.0.dist-info").mkdir(parents=True)
    return site


@pytest.mark.parametrize(
    ("changes", "requirements"),
    [
        ({}, TOOLS),
        ({"project": False}, TOOLS),
        ({"dependencies": ("six",)}, ("six", *TOOLS)),
        ({"dependencies": ("IPykernel<7",)}, ("IPykernel<7", "nbclient")),
        ({"header_source": b"# /// script\n# dependencies = ['six', 'nbclient>0.9']\n# ///\n"},
         ("six", "nbclient>0.9", "ipykernel")),
    ],
)  # fmt: skip
def test_they_are_added_to_what_it_asks_for(
    bench: Bench, changes: dict[str, Any], requirements: tuple[str, ...]
) -> None:
    order = bench.order(tools=TOOLS, **changes)
    assert (order.requirements, order.paths) == (requirements, ())


def test_they_are_added_to_the_packages_of_a_project(bench: Bench, write: Write) -> None:
    write("work/pyproject.toml", PROJECT)
    assert bench.order(tools=TOOLS).requirements == ("rich", *TOOLS)
    write("work/uv.lock", "")
    order = bench.order(tools=TOOLS)
    assert (order.requirements, order.project) == (TOOLS, str(bench.directory))


def test_a_virtual_environment_that_has_them_is_used_as_it_is(bench: Bench) -> None:
    venv(bench, *TOOLS)
    plan = bench.plan(tools=TOOLS)
    assert (plan.prepare, plan.notes) == (None, ())
    assert plan.argv[0] == str(bench.directory / ".venv" / "bin" / "python")


def test_a_virtual_environment_that_lacks_one_comes_after_one_that_has_them(bench: Bench) -> None:
    site = venv(bench, "ipykernel")
    plan = bench.plan(tools=TOOLS)
    order = bench.order(tools=TOOLS)
    assert (order.requirements, order.paths) == (TOOLS, (str(site),))
    assert order.python == str(bench.directory / ".venv" / "bin" / "python")
    (note,) = plan.notes
    assert f"{bench.directory / '.venv'} has no nbclient, so" in note
    assert bench.plan().notes == ()


def test_a_named_environment_has_to_have_them(bench: Bench) -> None:
    bench.make(DIGEST, "pluggy==1.5.0", "nbclient==0.10")
    bench.name("tools", DIGEST)
    with pytest.raises(InvalidArgumentError, match="lacks what a notebook is run with: 'ipykernel'") as caught:
        bench.plan(environment="tools", tools=TOOLS)
    assert caught.value.hint is not None
    assert "Create one that has nbclient and ipykernel" in caught.value.hint
    assert bench.plan(environment="tools", tools=("nbclient",)).environment is not None


def test_without_uv_nothing_is_added(bench: Bench) -> None:
    assert bench.plan(use_uv=False, tools=TOOLS).argv == (str(bench.python), "main.py")


def test_a_module_is_run_by_its_name(bench: Bench) -> None:
    for how in ({"use_uv": False}, {}):
        plan = bench.plan(script=None, module="a.b", args=("-x",), **how)
        assert plan.argv == (str(bench.python), "-m", "a.b", "-x")
    assert bench.order(script=None, module="ruff", dependencies=("ruff",)).requirements == ("ruff",)


def test_paths_in_the_header_of_a_package_start_in_the_package(bench: Bench, write: Write) -> None:
    write("work/package/local/pyproject.toml", "")
    header = b"# /// script\n# dependencies = ['./local']\n# ///\n"
    order = bench.order(script=Path("package"), header_source=header)
    assert order.requirements == ((bench.directory / "package" / "local").as_uri(),)
