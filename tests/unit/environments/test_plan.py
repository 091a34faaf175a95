from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import pytest

from pyexec.domain.errors import (
    InterpreterNotFoundError,
    InvalidArgumentError,
    NotFoundError,
    UvNotFoundError,
)
from pyexec.environments.interpreters import Interpreter
from pyexec.environments.plan import Planner, RunPlan
from tests.unit.environments.conftest import Machine

Write = Callable[[str, str | bytes], Path]
HEADER = b"# /// script\n# dependencies = ['rich']\n# requires-python = '>=3.12'\n# ///\n"


class Changes(TypedDict, total=False):
    script: Path
    header_source: bytes
    args: Sequence[str]
    use_uv: bool
    python_version: str | None
    dependencies: Sequence[str]
    folder: Path
    directory: Path
    project: bool


class Bench:
    """A machine with uv, Python 3.11 on PATH and 3.13 in pyenv, and a script to plan."""

    def __init__(self, machine: Machine, tmp_path: Path) -> None:
        self.machine = machine
        self.uv = machine.program("path/uv")
        self.python = machine.python("path/python3", (3, 11, 7))
        self.newer = machine.python("home/.pyenv/versions/3.13.0/bin/python", (3, 13, 0))
        machine.path("path")
        machine.environ["UV_PYTHON_DOWNLOADS"] = "never"
        self.directory = tmp_path / "work"
        self.directory.mkdir()
        self.folder = tmp_path / "executions" / "1"

    async def plan(self, **changes: Unpack[Changes]) -> RunPlan:
        planner = Planner(self.machine.finder(), self.machine.environ, self.machine.root / "own")
        asked: Changes = {
            "script": Path("main.py"),
            "header_source": b"",
            "args": (),
            "use_uv": True,
            "python_version": None,
            "dependencies": (),
            "folder": self.folder,
            "directory": self.directory,
            "project": True,
            **changes,
        }
        return await planner.plan(**asked)

    def asked_for(self) -> list[str]:
        return (self.folder / "requirements.in").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def bench(machine: Machine, tmp_path: Path) -> Bench:
    return Bench(machine, tmp_path)


async def test_a_script_that_needs_nothing_is_run_without_preparation(bench: Bench) -> None:
    plan = await bench.plan(args=["a", "--b"])
    assert plan == RunPlan(
        prepare=(),
        argv=(str(bench.python), "main.py", "a", "--b"),
        strategy="uv-run",
        python=str(bench.python),
        interpreter=Interpreter(path=bench.python, version=(3, 11, 7)),
        first_on_path=bench.python.parent,
    )
    assert not bench.folder.exists()


async def test_packages_are_resolved_then_fetched_then_used_offline(bench: Bench) -> None:
    plan = await bench.plan(dependencies=["rich", "numpy>=2"])
    resolved = bench.folder / "resolved.txt"
    assert plan.requirements == ("rich", "numpy>=2")
    assert plan.resolved == resolved
    assert bench.asked_for() == ["rich", "numpy>=2"]
    resolve, warm = plan.prepare
    assert resolve[1:3] == ("pip", "compile")
    assert resolve[-1] == str(bench.folder / "requirements.in")
    for command in (warm, plan.argv):
        assert command[command.index("--with-requirements") + 1] == str(resolved)
        assert "--isolated" in command
    assert "--offline" not in resolve + warm
    assert "--offline" in plan.argv


async def test_a_uv_that_keeps_no_cache_is_not_made_to_run_from_it(bench: Bench) -> None:
    bench.machine.environ["UV_NO_CACHE"] = "1"
    assert "--offline" not in (await bench.plan(dependencies=["rich"])).argv


async def test_the_header_and_the_call_are_put_together(bench: Bench) -> None:
    plan = await bench.plan(header_source=HEADER, dependencies=["numpy>=2", "rich"])
    assert plan.requirements == ("rich", "numpy>=2")
    assert plan.interpreter == Interpreter(path=bench.newer, version=(3, 13, 0))


@pytest.mark.case("B027")
async def test_a_header_and_a_call_that_exclude_each_other_are_refused_before_anything_is_written(
    bench: Bench,
) -> None:
    header = HEADER.replace(b"rich", b"pluggy==1.4.0")
    with pytest.raises(InvalidArgumentError, match=r"'pluggy==1\.4\.0' in the script's header and 'pluggy==1\.5\.0'"):
        await bench.plan(header_source=header, dependencies=["pluggy==1.5.0"])
    assert not bench.folder.exists()


async def test_a_header_that_asks_for_nothing_hides_what_the_interpreter_has(bench: Bench) -> None:
    plan = await bench.plan(header_source=b"# /// script\n# dependencies = []\n# ///\n")
    assert "--isolated" in plan.argv
    assert plan.prepare == ()


async def test_the_version_of_the_call_is_used(bench: Bench) -> None:
    assert (await bench.plan(python_version="3.13")).python == str(bench.newer)


@pytest.mark.case("B029")
async def test_a_version_outside_of_the_header_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match=r"3\.11 does not fit requires-python '>=3\.12'"):
        await bench.plan(header_source=HEADER, python_version="3.11")


async def test_a_python_uv_has_to_download_is_fetched_before_anything_is_resolved(bench: Bench) -> None:
    del bench.machine.environ["UV_PYTHON_DOWNLOADS"]
    plan = await bench.plan(python_version="3.14", dependencies=["rich"])
    assert (plan.python, plan.interpreter) == ("3.14", None)
    fetch, resolve, warm = plan.prepare
    assert "--with-requirements" not in fetch
    for command in (fetch, resolve, warm, plan.argv):
        assert command[command.index("--python") + 1] == "3.14"
    assert (await bench.plan(python_version="3.14")).prepare == (fetch,)


async def test_a_python_uv_may_not_download_is_an_error(bench: Bench) -> None:
    with pytest.raises(InterpreterNotFoundError):
        await bench.plan(python_version="3.14")


async def test_the_project_a_script_lies_in_gives_its_packages_and_its_range(bench: Bench, write: Write) -> None:
    file = write("work/pyproject.toml", "[project]\ndependencies = ['rich']\nrequires-python = '>=3.12'\n")
    plan = await bench.plan()
    assert plan.requirements == ("rich",)
    assert plan.python == str(bench.newer)
    with pytest.raises(InvalidArgumentError, match=f"does not fit requires-python '>=3.12' in {file}"):
        await bench.plan(python_version="3.11")


@pytest.mark.case("B030")
async def test_inline_code_a_header_and_packages_of_the_calls_own_leave_the_project_out(
    bench: Bench, write: Write
) -> None:
    write("work/pyproject.toml", "[project]\ndependencies = ['rich']\nrequires-python = '>=3.12'\n")
    assert (await bench.plan(project=False)).requirements == ()
    assert (await bench.plan(project=False)).python == str(bench.python)
    assert (await bench.plan(dependencies=["numpy"])).requirements == ("numpy",)
    assert (await bench.plan(header_source=b"# /// script\n# dependencies = []\n# ///\n")).requirements == ()


@pytest.mark.case("B030")
@pytest.mark.parametrize("content", ["[tool.ruff]\n", "[project]\nname = 'x'\n", "[project\n"])
async def test_a_project_that_asks_for_nothing_changes_nothing(bench: Bench, write: Write, content: str) -> None:
    write("work/pyproject.toml", content)
    plan = await bench.plan()
    assert (plan.requirements, plan.prepare) == ((), ())
    assert "--isolated" not in plan.argv


async def test_what_a_project_has_beside_plain_requirements_is_noted(bench: Bench, write: Write) -> None:
    file = write(
        "work/pyproject.toml",
        "[project]\ndependencies = ['rich', 'mine']\n[tool.uv.sources]\nmine = {workspace = true}\n",
    )
    plan = await bench.plan()
    assert plan.requirements == ("rich",)
    assert plan.notes == (f"mine lies in the project ({file}) itself and was not installed.",)


async def test_a_fault_in_a_projects_requirements_names_its_file(bench: Bench, write: Write) -> None:
    file = write("work/pyproject.toml", "[project]\ndependencies = ['?']\n")
    with pytest.raises(InvalidArgumentError, match=f"in {file} cannot be read"):
        await bench.plan()


async def test_local_paths_start_at_the_script_in_a_header_and_at_the_directory_in_a_call(
    bench: Bench, write: Write, tmp_path: Path
) -> None:
    for path in ("work/tools/lib/x", "work/other/x"):
        write(path, "")
    header = b"# /// script\n# dependencies = ['./lib', 'a']\n# [tool.uv.sources]\n# a = {path = 'lib'}\n# ///\n"
    plan = await bench.plan(script=Path("tools/main.py"), header_source=header, dependencies=["./other"])
    work = f"file://{tmp_path}/work"
    assert plan.requirements == (f"{work}/tools/lib", f"a @ {work}/tools/lib", f"{work}/other")


async def test_a_local_path_with_nothing_there_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFoundError):
        await bench.plan(dependencies=["./gone"])


async def test_options_of_a_header_reach_every_command_that_needs_them(bench: Bench) -> None:
    header = b"# /// script\n# dependencies = ['rich']\n# [[tool.uv.index]]\n# url = 'https://x.org/simple'\n# ///\n"
    plan = await bench.plan(header_source=header)
    for command in (*plan.prepare, plan.argv):
        assert command[command.index("--index") + 1] == "https://x.org/simple"


async def test_a_header_that_cannot_be_read_is_refused_with_uv_and_noted_without(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match="is not closed"):
        await bench.plan(header_source=b"# /// script\n")
    plan = await bench.plan(header_source=b"# /// script\n", use_uv=False)
    assert plan.notes == ("The script's header, opened at line 1, is not closed.",)


async def test_without_uv_the_python_on_path_runs_the_script(bench: Bench) -> None:
    bench.uv.unlink()
    assert await bench.plan(use_uv=False, args=["-x"], script=Path("-m")) == RunPlan(
        prepare=(),
        argv=(str(bench.python), "./-m", "-x"),
        strategy="system-python",
        python=str(bench.python),
        interpreter=Interpreter(path=bench.python, version=(3, 11, 7)),
    )


async def test_without_uv_an_activated_environment_is_used_by_its_own_name(bench: Bench) -> None:
    venv = bench.machine.link("venv/bin/python3", bench.python, (3, 11, 7))
    bench.machine.program("venv/pyvenv.cfg")
    bench.machine.path("venv/bin", "path")
    assert (await bench.plan(use_uv=False)).argv[0] == str(venv)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"use_uv": False, "python_version": "3.13"}, "python_version needs use_uv=true; "),
        ({"use_uv": False, "dependencies": ["rich"]}, "dependencies need use_uv=true; "),
    ],
)
async def test_what_needs_uv_is_refused_without_it_in_a_sentence(bench: Bench, changes: Changes, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        await bench.plan(**changes)


@pytest.mark.case("B029")
async def test_without_uv_a_script_never_runs_on_a_version_outside_of_its_range(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match=r"requires Python '>=3\.12', and .* is 3\.11\.7"):
        await bench.plan(use_uv=False, header_source=HEADER)


async def test_without_uv_packages_in_a_header_are_noted(bench: Bench) -> None:
    plan = await bench.plan(use_uv=False, header_source=HEADER.replace(b"3.12", b"3.11"))
    assert plan.notes == ("The packages in the script's header were not installed: that needs use_uv=true.",)


async def test_without_uv_installed_a_run_with_it_is_refused(bench: Bench) -> None:
    bench.uv.unlink()
    with pytest.raises(UvNotFoundError):
        await bench.plan()


async def test_an_argument_no_process_can_have_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match="NUL"):
        await bench.plan(args=["a\0b"])


async def test_a_folder_uv_cannot_take_a_list_from_is_refused(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="a path with a comma"):
        await bench.plan(dependencies=["rich"], folder=tmp_path / "a,b")


@pytest.mark.case("B190")
async def test_no_variable_of_the_server_stands_on_a_command_line(bench: Bench) -> None:
    bench.machine.environ |= {"UV_INDEX_MINE_PASSWORD": "SECRET", "PYEXEC_CLIENT_SECRET": "SECRET"}
    plan = await bench.plan(dependencies=["rich"])
    assert not any("SECRET" in word for command in (*plan.prepare, plan.argv) for word in command)
