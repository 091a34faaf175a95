import sys
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import (
    InterpreterNotFoundError,
    InvalidArgumentError,
    NotFoundError,
    UvNotFoundError,
)
from pyexec.environments.asking import RunPlan
from pyexec.environments.orders import BuildOrder
from tests.unit.environments.bench import FRESH_SECONDS, OWNER, Bench, order_of
from tests.unit.environments.conftest import Machine, Write

HEADER = b"# /// script\n# dependencies = ['rich']\n# requires-python = '>=3.12'\n# ///\n"
EMPTY_HEADER = b"# /// script\n# dependencies = []\n# ///\n"
DIGEST = "a" * 32


@pytest.fixture
def bench(machine: Machine, tmp_path: Path) -> Bench:
    return Bench(machine, tmp_path)


def test_a_script_that_needs_nothing_is_run_without_preparation(bench: Bench) -> None:
    assert bench.plan(args=("a", "--b")) == RunPlan(
        argv=(str(bench.python), "main.py", "a", "--b"),
        strategy="uv-run",
        python=str(bench.python),
        python_version="3.11.7",
        packages=(),
        first_on_path=bench.python.parent,
    )
    assert bench.remembered() == []


def test_packages_are_made_ready_by_a_program_that_is_told_everything_through_a_pipe(bench: Bench) -> None:
    plan = bench.plan(dependencies=("rich", "numpy>=2"), constraints=("numpy<3",), args=("a",))
    order = order_of(plan)
    assert plan.prepare is not None
    assert plan.prepare.argv == (sys.executable, "-I", "-m", "pyexec.environments.build")
    assert plan == RunPlan(
        prepare=plan.prepare,
        argv=(str(bench.python), "main.py", "a"),
        strategy="uv-run",
        python=str(bench.python),
        python_version="3.11.7",
    )
    assert order == BuildOrder(
        root=str(bench.store.root),
        uv=str(bench.uv),
        key=order.key,
        python=str(bench.python),
        python_version="3.11.7",
        requirements=("rich", "numpy>=2"),
        constraints=("numpy<3",),
        cwd=str(bench.directory),
        fresh_seconds=FRESH_SECONDS,
        folder=str(bench.asked.folder),
        holder="1",
        holder_lock=str(bench.asked.holder_lock),
        owner=OWNER,
        asked=("rich", "numpy>=2"),
    )
    assert bench.remembered() == []


def test_a_ready_environment_is_leased_and_its_interpreter_runs_at_once(bench: Bench) -> None:
    asked: dict[str, Any] = {"dependencies": ("pluggy",), "args": ("a",)}
    bench.resolve((bench.order(**asked)).key, DIGEST, notes=("The index was slow.",))
    made = bench.make(DIGEST, "pluggy==1.5.0")
    plan = bench.plan(**asked)
    assert plan.environment is not None
    assert plan == RunPlan(
        argv=(str(made.python), "main.py", "a"),
        strategy="uv-run",
        python=str(made.python),
        python_version="3.11.7",
        environment=plan.environment,
        packages=("pluggy==1.5.0",),
        first_on_path=made.python.parent,
        notes=("The index was slow.",),
    )
    assert bench.leases(DIGEST) == {"1": str(bench.asked.holder_lock)}


def test_an_old_resolution_is_asked_for_again_though_its_environment_is_ready(bench: Bench) -> None:
    key = (bench.order(dependencies=("pluggy",))).key
    bench.make(DIGEST)
    bench.resolve(key, DIGEST, age=FRESH_SECONDS - 60)
    assert (bench.plan(dependencies=("pluggy",))).prepare is None
    bench.resolve(key, DIGEST, age=FRESH_SECONDS)
    assert (bench.order(dependencies=("pluggy",))).key == key


def test_an_environment_that_is_gone_or_half_made_is_made_again(bench: Bench) -> None:
    key = (bench.order(dependencies=("pluggy",))).key
    bench.resolve(key, DIGEST)
    assert (bench.order(dependencies=("pluggy",))).key == key
    (bench.store.folder(DIGEST) / "bin").mkdir(parents=True)
    (bench.store.folder(DIGEST) / "bin" / "python").symlink_to(bench.python)
    assert (bench.order(dependencies=("pluggy",))).key == key
    assert bench.leases(DIGEST) == {}


def test_an_environment_that_gets_a_name_is_always_prepared(bench: Bench) -> None:
    url = "lib @ https://user:SECRET@x.org/lib.whl"
    key = (bench.order(dependencies=(url,))).key
    bench.resolve(key, DIGEST)
    bench.make(DIGEST)
    order = bench.order(dependencies=(url,), keep_as="tools")
    assert (order.key, order.name, order.owner, order.requirements) == (key, "tools", OWNER, (url,))
    assert order.asked == ("lib @ https://x.org/lib.whl",)
    assert (bench.order(keep_as="bare")).requirements == ()


def test_the_header_and_the_call_are_put_together(bench: Bench) -> None:
    order = bench.order(header_source=HEADER, dependencies=("numpy>=2", "rich"))
    assert order.requirements == ("rich", "numpy>=2")
    assert (order.python, order.python_version) == (str(bench.newer), "3.13.0")


@pytest.mark.case("B027")
def test_a_header_and_a_call_that_exclude_each_other_are_refused_before_anything_is_written(
    bench: Bench,
) -> None:
    header = HEADER.replace(b"rich", b"pluggy==1.4.0")
    with pytest.raises(InvalidArgumentError, match=r"'pluggy==1\.4\.0' in the script's header and 'pluggy==1\.5\.0'"):
        bench.plan(header_source=header, dependencies=("pluggy==1.5.0",))
    assert bench.remembered() == []
    assert not bench.asked.folder.exists()


@pytest.mark.parametrize("bad", ["-r x", "?", "a==1,==2"])
def test_a_fault_in_the_constraints_is_said_to_be_there(bench: Bench, bad: str) -> None:
    with pytest.raises(InvalidArgumentError, match=" in constraints"):
        bench.plan(dependencies=("rich",), constraints=(bad,))


def test_a_header_that_asks_for_nothing_hides_what_the_interpreter_has(bench: Bench) -> None:
    order = bench.order(header_source=EMPTY_HEADER)
    assert (order.requirements, order.python) == ((), str(bench.python))


def test_the_version_of_the_call_is_used(bench: Bench) -> None:
    assert (bench.plan(python_version="3.13")).python == str(bench.newer)
    assert (bench.order(python_version="3.13", dependencies=("rich",))).python == str(bench.newer)


def test_when_nobody_asks_a_script_runs_on_the_version_of_the_server_if_that_is_here(bench: Bench) -> None:
    bench.machine.python("path/python3", (3, 13, 1))
    own = bench.machine.python("path/python3.11", (3, 11, 9))
    assert (bench.plan()).python == str(own)
    own.unlink()
    assert (bench.plan()).python == str(bench.python)


@pytest.mark.case("B029")
def test_a_version_outside_of_the_header_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match=r"3\.11 does not fit requires-python '>=3\.12'"):
        bench.plan(header_source=HEADER, python_version="3.11")


def test_a_python_uv_has_to_download_makes_a_request_that_cannot_be_remembered_yet(bench: Bench) -> None:
    del bench.machine.environ["UV_PYTHON_DOWNLOADS"]
    for asked in ((), ("rich",)):
        plan = bench.plan(python_version="3.14", dependencies=asked)
        order = order_of(plan)
        assert (order.key, order.python, order.python_version) == (None, "3.14", None)
        assert order.requirements == asked
        assert (plan.python, plan.python_version, plan.argv[0]) == ("3.14", None, "3.14")


def test_a_python_uv_may_not_download_is_an_error(bench: Bench) -> None:
    with pytest.raises(InterpreterNotFoundError):
        bench.plan(python_version="3.14")


def test_local_paths_start_at_the_script_in_a_header_and_at_the_directory_in_a_call(
    bench: Bench, write: Write, tmp_path: Path
) -> None:
    for path in ("work/tools/lib/x", "work/other/x"):
        write(path, "")
    header = b"# /// script\n# dependencies = ['./lib', 'a']\n# [tool.uv.sources]\n# a = {path = 'lib'}\n# ///\n"
    order = bench.order(script=Path("tools/main.py"), header_source=header, dependencies=("./other",))
    work = f"file://{tmp_path}/work"
    assert order.requirements == (f"{work}/tools/lib", f"a @ {work}/tools/lib", f"{work}/other")
    assert order.editables == ()


def test_an_editable_project_is_resolved_like_any_and_told_apart(bench: Bench, write: Write, tmp_path: Path) -> None:
    write("work/lib/pyproject.toml", "")
    header = b"# /// script\n# dependencies = ['a[x]']\n# [tool.uv.sources]\n# a = {path='lib', editable=true}\n# ///\n"
    for changes in ({"dependencies": ("-e ./lib[x]",)}, {"header_source": header}):
        order = bench.order(**changes)
        assert order.requirements == (f"file://{tmp_path}/work/lib[x]",)
        assert order.editables == (f"{tmp_path}/work/lib",)


@pytest.mark.parametrize("gone", ["./gone", "lib @ ./gone", "-e ./gone"])
def test_a_local_path_with_nothing_there_is_not_found(bench: Bench, gone: str) -> None:
    with pytest.raises(NotFoundError):
        bench.plan(dependencies=(gone,))


def test_options_of_a_header_and_an_index_of_the_call_are_handed_on(bench: Bench) -> None:
    header = b"# /// script\n# dependencies = ['rich']\n# [[tool.uv.index]]\n# url = 'https://x.org/simple'\n# ///\n"
    order = bench.order(header_source=header, index_url="https://y.org/simple")
    assert order.options == ("--index", "https://x.org/simple")
    assert order.index_url == "https://y.org/simple"


def test_a_header_that_cannot_be_read_is_refused_with_uv_and_noted_without(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match="is not closed"):
        bench.plan(header_source=b"# /// script\n")
    plan = bench.plan(header_source=b"# /// script\n", use_uv=False)
    assert plan.notes == ("The script's header, opened at line 1, is not closed.",)


def test_without_uv_the_python_on_path_runs_the_script(bench: Bench) -> None:
    bench.uv.unlink()
    assert bench.plan(use_uv=False, args=("-x",), script=Path("-m")) == RunPlan(
        argv=(str(bench.python), "./-m", "-x"),
        strategy="system-python",
        python=str(bench.python),
        python_version="3.11.7",
    )


def test_without_uv_an_activated_environment_is_used_by_its_own_name(bench: Bench) -> None:
    venv = bench.machine.link("venv/bin/python3", bench.python, (3, 11, 7))
    bench.machine.program("venv/pyvenv.cfg")
    bench.machine.path("venv/bin", "path")
    assert (bench.plan(use_uv=False)).argv[0] == str(venv)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"python_version": "3.13"}, "python_version needs use_uv=true; without uv the script runs on the python3"),
        ({"dependencies": ("rich",)}, "dependencies needs use_uv=true; without uv nothing is installed"),
        ({"constraints": ("rich",)}, "constraints needs use_uv=true; without uv nothing is installed"),
        ({"index_url": "https://x.org"}, "index_url needs use_uv=true; without uv nothing is installed"),
        ({"environment": "tools"}, "environment needs use_uv=true; without uv nothing is installed"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_what_needs_uv_is_refused_without_it_in_a_sentence(bench: Bench, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        bench.plan(use_uv=False, **changes)


@pytest.mark.case("B029")
def test_without_uv_a_script_never_runs_on_a_version_outside_of_its_range(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match=r"requires Python '>=3\.12', and .* is 3\.11\.7"):
        bench.plan(use_uv=False, header_source=HEADER)


def test_without_uv_packages_in_a_header_are_noted(bench: Bench) -> None:
    plan = bench.plan(use_uv=False, header_source=HEADER.replace(b"3.12", b"3.11"))
    assert plan.notes == ("The packages in the script's header were not installed: that needs use_uv=true.",)


def test_without_uv_installed_a_run_with_it_is_refused(bench: Bench) -> None:
    bench.uv.unlink()
    with pytest.raises(UvNotFoundError):
        bench.plan()


def test_the_uv_that_comes_with_us_makes_environments(bench: Bench) -> None:
    own = bench.machine.program("own/bin/uv")
    assert (bench.order(dependencies=("rich",))).uv == str(own)


def test_an_argument_no_process_can_have_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match="NUL"):
        bench.plan(args=("a\0b",))


@pytest.mark.case("B190")
@pytest.mark.case("B037")
def test_no_secret_stands_on_a_command_line_or_in_what_is_shown_of_a_plan(bench: Bench) -> None:
    bench.machine.environ |= {"UV_INDEX_MINE_PASSWORD": "SECRET", "PYEXEC_CLIENT_SECRET": "SECRET"}
    asked: dict[str, Any] = {
        "dependencies": ("rich", "lib @ https://SECRET@x.org/lib.whl"),
        "constraints": ("numpy @ https://u:SECRET@x.org/numpy.whl",),
        "index_url": "https://u:SECRET@x.org/simple",
        "environ": {"UV_INDEX_MINE_PASSWORD": "SECRET"},
    }
    plan = bench.plan(**asked)
    assert plan.prepare is not None
    assert not any("SECRET" in word for word in (*plan.prepare.argv, *plan.argv))
    assert "SECRET" not in repr(plan)
    order = order_of(plan)
    assert "SECRET" not in repr(order)
    assert (order.index_url, order.requirements) == (asked["index_url"], asked["dependencies"])
