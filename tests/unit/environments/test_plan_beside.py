"""Packages of our own tools beside a program."""

import os
from pathlib import Path

import pytest

from pyexec.environments.asking import RunPlan
from pyexec.environments.beside import of_the_same_python, tools_link
from pyexec.environments.orders import BuildOrder
from tests.unit.environments.bench import Bench
from tests.unit.environments.conftest import Machine

PROGRAM, TOOLS = "a" * 32, "b" * 32
ASKED = {"beside": ("meter>=1",), "beside_lacking": "No meter."}


@pytest.fixture
def bench(machine: Machine, tmp_path: Path) -> Bench:
    bench = Bench(machine, tmp_path)
    bench.asked.folder.mkdir(parents=True)
    return bench


def orders_of(plan: RunPlan) -> list[BuildOrder]:
    assert plan.prepare is not None
    return [BuildOrder.from_json(line) for line in plan.prepare.stdin.split("\n")]


def test_a_program_that_needs_nothing_waits_for_the_tools_alone(bench: Bench) -> None:
    without = bench.plan()
    plan = bench.plan(**ASKED)
    (order,) = orders_of(plan)
    assert (order.requirements, order.options) == (("meter>=1",), ("--only-binary", ":all:"))
    assert (order.python, order.python_version) == (str(bench.python), "3.11.7")
    assert (order.link, order.lacking) == (str(tools_link(bench.asked.folder)), "No meter.")
    assert plan.prepare is not None
    assert plan.prepare.only_tools
    assert (plan.argv, plan.packages, plan.first_on_path) == (without.argv, without.packages, without.first_on_path)


def test_one_that_needs_packages_waits_for_both(bench: Bench) -> None:
    plan = bench.plan(dependencies=("pluggy",), index_url="https://u:SECRET@x.org/simple", **ASKED)
    program, tools = orders_of(plan)
    assert (program.requirements, program.link) == (("pluggy",), None)
    assert tools.requirements == ("meter>=1",)
    assert tools.index_url is None
    assert plan.prepare is not None
    assert not plan.prepare.only_tools


def test_tools_that_are_there_are_leased_and_linked_to(bench: Bench) -> None:
    (order,) = orders_of(bench.plan(**ASKED))
    made = bench.make(TOOLS, "meter==1.0")
    site = made.python.parent.parent / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    bench.resolve(order.key, TOOLS)
    assert bench.plan(**ASKED) == bench.plan()
    assert os.readlink(tools_link(bench.asked.folder)) == str(site)
    assert bench.leases(TOOLS) == {"1": str(bench.asked.holder_lock)}


def test_programs_in_environments_of_one_python_share_the_tools(bench: Bench) -> None:
    bench.make(PROGRAM)
    bench.name("mine", PROGRAM)
    (named,) = orders_of(bench.plan(environment="mine", **ASKED))
    (plain,) = orders_of(bench.plan(**ASKED))
    assert named == plain


def test_for_a_python_that_uv_fetches_they_are_made_after_it(bench: Bench) -> None:
    bench.machine.environ["UV_PYTHON_DOWNLOADS"] = "automatic"
    program, tools = orders_of(bench.plan(python_version="3.12", **ASKED))
    assert (program.python, tools.python, tools.key) == ("3.12", "", None)
    made = bench.make(PROGRAM, version="3.12.1")
    filled = of_the_same_python(tools, made)
    assert (filled.python, filled.python_version) == (str(made.python.resolve()), "3.12.1")
    assert of_the_same_python(program, made) == program
