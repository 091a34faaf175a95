"""Which interpreter and which environment sandboxes get."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import InterpreterNotFoundError, InvalidArgumentError, WallUnavailableError
from pyexec.domain.sandboxes import PACKAGES
from pyexec.environments.asking import RunPlan
from pyexec.environments.sandboxes import SandboxEnvironments
from tests.unit.environments.bench import Bench, order_of
from tests.unit.environments.conftest import Machine

DIGEST = "c" * 32


@pytest.fixture
def bench(machine: Machine, tmp_path: Path) -> Bench:
    bench = Bench(machine, tmp_path)
    bench.asked.folder.mkdir(parents=True)
    return bench


def sandboxes(bench: Bench, environ: Mapping[str, str] | None = None) -> SandboxEnvironments:
    return SandboxEnvironments(
        planner=bench.planner(),
        finder=bench.machine.finder(),
        store=bench.store,
        environ=environ or {},
        directory=bench.directory,
    )


def plan(bench: Bench, **changes: Any) -> RunPlan:
    asked: dict[str, Any] = {
        "folder": bench.asked.folder,
        "holder_lock": bench.asked.holder_lock,
        "owner": "somebody",
        **changes,
    }
    return sandboxes(bench).plan(**asked)


def test_the_first_plan_carries_what_makes_the_environment_and_the_next_has_it_at_once(bench: Bench) -> None:
    order = order_of(plan(bench))

    assert (order.python, order.requirements, order.cwd) == (str(bench.newer), PACKAGES, str(bench.directory))
    made = bench.make(DIGEST, version="3.13.0")
    bench.resolve(order.key, DIGEST)
    ready = plan(bench)
    assert (ready.prepare, ready.environment) == (None, made)
    assert bench.leases(DIGEST) == {"1": str(bench.asked.holder_lock)}


def test_a_plan_of_a_moment_ago_is_leased_by_the_next_who_asks_as_long_as_its_environment_is_there(
    bench: Bench,
) -> None:
    asked: dict[str, Any] = {"folder": bench.asked.folder, "owner": "somebody"}
    made = bench.make(DIGEST, version="3.13.0")
    bench.resolve(order_of(plan(bench)).key, DIGEST)
    same = sandboxes(bench)
    first = same.plan(holder_lock=bench.directory / "first" / "lock", **asked)
    bench.newer.unlink()  # Nothing of it is looked for again.
    second = same.plan(holder_lock=bench.directory / "second" / "lock", **asked)
    assert (first.environment, second.environment) == (made, made)
    assert set(bench.leases(DIGEST)) == {"first", "second"}
    shutil.rmtree(bench.store.folder(DIGEST))
    with pytest.raises(InterpreterNotFoundError):
        same.plan(holder_lock=bench.directory / "third" / "lock", **asked)


def test_a_python_that_all_packages_have_wheels_for_comes_before_a_newer_one(bench: Bench) -> None:
    newest = bench.machine.python("home/.pyenv/versions/3.15.0/bin/python", (3, 15, 0))

    assert plan(bench).python == str(bench.newer)
    assert plan(bench, python="3.15").python == str(newest)
    bench.newer.unlink()
    assert plan(bench).python == str(newest)


def test_one_in_the_folder_of_uv_will_do_and_one_behind_a_virtual_environment_is_the_one_behind_it(
    bench: Bench,
) -> None:
    bench.newer.unlink()
    here = bench.machine.python("home/.local/share/uv/python/cpython-3.12.4/bin/python3", (3, 12, 4))
    assert plan(bench).python == str(here)
    behind = bench.machine.python("elsewhere/python3.12", (3, 12, 9))
    bench.machine.link("path/python3.12", behind, (3, 12, 9))
    assert plan(bench).python == str(behind)


def test_where_there_is_none_one_sentence_says_how_to_get_it(bench: Bench) -> None:
    bench.newer.unlink()

    with pytest.raises(InterpreterNotFoundError) as refused:
        plan(bench)

    assert refused.value.message == "No Python on this machine fits '>=3.12'; here are 3.11.7."
    assert refused.value.hint == "Install one with `uv python install '>=3.12'`."


def test_uv_may_fetch_one_that_is_new_enough(bench: Bench) -> None:
    bench.newer.unlink()
    del bench.machine.environ["UV_PYTHON_DOWNLOADS"]

    assert order_of(plan(bench)).python == ">=3.12"
    assert order_of(plan(bench, python=">=3.9,!=3.11.*")).python == "!=3.11.*,>=3.12,>=3.9"


def test_one_that_is_too_old_is_refused_before_anything_is_made(bench: Bench) -> None:
    for asked in (str(bench.python), "<3.12"):
        with pytest.raises(WallUnavailableError) as refused:
            plan(bench, python=asked)
        assert refused.value.message == (
            f"Sandboxes need Python 3.12 or newer; PYEXEC_SANDBOX_PYTHON is {asked}, which is 3.11.7."
        )


def test_a_requirement_that_is_none_is_told_with_the_setting_it_is_in(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match="PYEXEC_SANDBOX_PACKAGES"):
        plan(bench, packages=("numpy", "pandas=2"))


def test_nothing_is_built_on_this_machine_unless_the_operator_says_so(bench: Bench) -> None:
    assert sandboxes(bench).build_environ["UV_NO_BUILD"] == "1"
    assert sandboxes(bench, {"UV_NO_BUILD": "0"}).build_environ["UV_NO_BUILD"] == "0"
