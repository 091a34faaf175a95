"""Plans carried out by the real uv, with its own empty cache; small packages come from the index."""

import dataclasses
import os
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from pyexec.domain.errors import UvNotFoundError
from pyexec.environments.failures import PreparationFailure, explain
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.environments.plan import Planner, RunPlan
from pyexec.environments.requirements import read_resolved
from pyexec.environments.uv import find_uv, offline, patience
from pyexec.environments.variables import child_environment
from tests.unit.environments.conftest import Version

Write = Callable[[str, str | bytes], Path]


def has_uv() -> bool:
    try:
        find_uv(os.environ, Path(sys.prefix))
    except UvNotFoundError:
        return False
    return True


pytestmark = [pytest.mark.needs_uv, pytest.mark.skipif(not has_uv(), reason="uv is not installed")]

SHOW = "import importlib.metadata as m, sys; print(*(f'{n}={m.version(n)}' for n in sys.argv[1:]))\n"


def probe(path: Path) -> Version | None:
    code = "import sys; print(*sys.version_info[:3])"
    done = subprocess.run([path, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=30, check=False)
    numbers = [int(part) for part in done.stdout.split()]
    return (numbers[0], numbers[1], numbers[2]) if done.returncode == 0 and len(numbers) == 3 else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ran:
    stdout: str
    stderr: str
    code: int
    plan: RunPlan


class Runner:
    """Plans a script, prepares it and runs it, as the executions room does."""

    def __init__(self, tmp_path: Path, cache: Path, versions: Path) -> None:
        self.directory = tmp_path / "work"
        self.directory.mkdir()
        self.folder = tmp_path / "executions" / "1"
        self.server = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PYTHON"))},
            "UV_CACHE_DIR": str(cache),
            "UV_PYTHON_DOWNLOADS": "never",
        }
        self._versions = versions

    async def plan(
        self,
        source: str | bytes,
        *,
        name: str = "main.py",
        args: Sequence[str] = (),
        dependencies: Sequence[str] = (),
        python_version: str | None = None,
        project: bool = True,
        use_uv: bool = True,
    ) -> RunPlan:
        content = source.encode() if isinstance(source, str) else source
        if project:
            (self.directory / name).write_bytes(content)
            script = Path(name)
        else:
            script = self.folder.parent / "inline.py"
            script.parent.mkdir(exist_ok=True)
            script.write_bytes(content)
        finder = InterpreterFinder(self.server, self._versions, probe, own=Path(sys.executable))
        return await Planner(finder, self.server, Path(sys.prefix)).plan(
            script=script,
            header_source=content,
            args=args,
            use_uv=use_uv,
            python_version=python_version,
            dependencies=dependencies,
            folder=self.folder,
            directory=self.directory,
            project=project,
        )

    def start(self, argv: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
        environ: Mapping[str, str] = {**child_environment(self.server, None, {}), **more}
        return subprocess.run(
            argv, cwd=self.directory, env=environ, capture_output=True, text=True, timeout=60, check=False
        )

    def prepare(self, plan: RunPlan) -> PreparationFailure | None:
        for command in plan.prepare:
            done = self.start(command, **patience(self.server))
            if done.returncode != 0:
                return explain(done.stderr, self.server)
        return None

    def run(self, plan: RunPlan) -> Ran:
        failure = self.prepare(plan)
        assert failure is None, failure
        done = self.start(plan.argv)
        return Ran(stdout=done.stdout, stderr=done.stderr, code=done.returncode, plan=plan)

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.directory)) for path in self.directory.rglob("*"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uv")


@pytest.fixture
def runner(tmp_path: Path, cache: Path) -> Runner:
    return Runner(tmp_path, cache / "cache", cache / "interpreters.json")


async def test_a_script_gets_its_arguments_and_its_streams_and_exit_code_are_its_own(runner: Runner) -> None:
    source = "import sys; print(sys.argv); print('mine', file=sys.stderr); sys.exit(7)\n"
    ran = runner.run(await runner.plan(source, args=["--help", "-c", "a b", "--"]))
    assert (ran.stdout, ran.stderr, ran.code) == ("['main.py', '--help', '-c', 'a b', '--']\n", "mine\n", 7)
    assert runner.files() == ["main.py"]


async def test_a_script_may_have_a_name_like_an_option(runner: Runner) -> None:
    for use_uv in (True, False):
        assert runner.run(await runner.plan("print('ran')", name="-c", use_uv=use_uv)).stdout == "ran\n"


@pytest.mark.case("B023")
@pytest.mark.case("B024")
@pytest.mark.parametrize(
    ("start", "end"),
    [(b"", b"\n"), (b"\xef\xbb\xbf", b"\n"), (b"", b"\r\n"), (b"\xef\xbb\xbf", b"\r\n")],
    ids=["plain", "bom", "crlf", "bom-crlf"],
)
async def test_packages_of_a_header_are_there_whatever_the_file_is_called(
    runner: Runner, start: bytes, end: bytes
) -> None:
    lines = (b"# /// script", b'# dependencies = ["iniconfig"]', b"# ///", b"import iniconfig; print('ran')", b"")
    ran = runner.run(await runner.plan(start + end.join(lines), name="tool"))
    assert (ran.stdout, ran.stderr) == ("ran\n", "")
    assert ran.plan.resolved is not None
    assert [one.split("==")[0] for one in read_resolved(ran.plan.resolved.read_text())] == ["iniconfig"]
    assert runner.files() == ["tool"]


@pytest.mark.case("B027")
async def test_header_and_call_are_met_together(runner: Runner) -> None:
    header = "# /// script\n# dependencies = ['pluggy<1.6']\n# ///\n"
    plan = await runner.plan(header + SHOW, args=["pluggy", "iniconfig"], dependencies=["pluggy>=1.5", "iniconfig"])
    assert runner.run(plan).stdout.startswith("pluggy=1.5.0 iniconfig=")


@pytest.mark.case("B029")
async def test_nothing_around_the_script_changes_the_python_it_requires(runner: Runner) -> None:
    runner.server["UV_PYTHON"] = "3.8"
    (runner.directory / ".python-version").write_text("3.8\n", encoding="utf-8")
    header = "# /// script\n# requires-python = '>=3.11'\n# ///\n"
    ran = runner.run(await runner.plan(header + "import sys; print(sys.version_info >= (3, 11))"))
    assert ran.stdout == "True\n"


@pytest.mark.case("B030")
@pytest.mark.parametrize(
    "content",
    [
        "[tool.ruff]\nline-length = 100\n",
        "[project]\nname = 'x'\nversion = '1'\ndependencies = ['iniconfig']\n",
        "[project]\nname = 'x'\ndynamic = ['version', 'dependencies']\n[build-system]\nrequires = ['setuptools']\n",
        "[project\n",
        "[tool.uv]\nrequired-version = '>=99'\n",
        "[tool.uv]\nmanaged = 3\n",
    ],
    ids=["no-project", "project", "dynamic", "damaged", "other-uv", "wrong-type"],
)
async def test_inline_code_is_untouched_by_the_project_around_it(runner: Runner, content: str) -> None:
    (runner.directory / "pyproject.toml").write_text(content, encoding="utf-8")
    (runner.directory / "setup.py").write_text("import setuptools; setuptools.setup()\n", encoding="utf-8")
    code = "import importlib.util; print(1, importlib.util.find_spec('iniconfig'))"
    venv.create(runner.directory.parent / "bare", with_pip=False)
    bare = str(runner.directory.parent / "bare" / "bin" / "python")
    ran = runner.run(await runner.plan(code, project=False, python_version=bare))
    assert (ran.stdout, ran.stderr) == ("1 None\n", "")
    assert runner.files() == ["pyproject.toml", "setup.py"]


@pytest.mark.case("B030")
async def test_a_script_in_a_project_gets_its_packages_and_nothing_is_made_there(runner: Runner) -> None:
    (runner.directory / "pyproject.toml").write_text(
        "[project]\nname = 'x'\nversion = '1'\ndependencies = ['pluggy==1.5.0']\n", encoding="utf-8"
    )
    assert runner.run(await runner.plan(SHOW, args=["pluggy"])).stdout == "pluggy=1.5.0\n"
    assert runner.files() == ["main.py", "pyproject.toml"]


async def test_packages_of_the_interpreter_are_seen_unless_the_script_names_its_own(runner: Runner) -> None:
    home = runner.directory.parent / "venv"
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "only_here.py").write_text("", encoding="utf-8")
    code = "import importlib.util; print(importlib.util.find_spec('only_here') is not None)"
    python = str(home / "bin" / "python")
    seen = runner.run(await runner.plan(code, python_version=python)).stdout
    with_header = runner.run(
        await runner.plan("# /// script\n# dependencies=[]\n# ///\n" + code, python_version=python)
    )
    with_packages = runner.run(await runner.plan(code, python_version=python, dependencies=["iniconfig"]))
    assert (seen, with_header.stdout, with_packages.stdout) == ("True\n", "False\n", "False\n")


async def test_a_local_wheel_is_installed_from_a_path_with_spaces(runner: Runner) -> None:
    folder = runner.directory / "my wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "lib-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("lib.py", "WHERE = 'wheel'\n")
        wheel.writestr("lib-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: lib\nVersion: 1\n")
        wheel.writestr("lib-1.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nTag: py3-none-any\n")
        wheel.writestr("lib-1.dist-info/RECORD", "")
    plan = await runner.plan("import lib; print(lib.WHERE)", dependencies=["./my wheels/lib-1-py3-none-any.whl"])
    assert runner.run(plan).stdout == "wheel\n"


async def test_the_date_in_a_header_counts(runner: Runner) -> None:
    header = "# /// script\n# dependencies = ['pluggy']\n# [tool.uv]\n# exclude-newer = '2024-04-01'\n# ///\n"
    assert runner.run(await runner.plan(header + SHOW, args=["pluggy"])).stdout == "pluggy=1.4.0\n"


async def test_preparing_ends_with_the_version_of_python(runner: Runner) -> None:
    plan = await runner.plan("", dependencies=["iniconfig"])
    assert runner.prepare(plan) is None
    assert plan.interpreter is not None
    assert runner.start(plan.prepare[-1]).stdout == "{}.{}.{}\n".format(*plan.interpreter.version)


@pytest.mark.case("B035")
@pytest.mark.parametrize(
    ("dependencies", "named"),
    [(["no-such-pkg-zz9"], ["no-such-pkg-zz9"]), (["pytest==8.0.0", "pluggy<1"], ["pytest==8.0.0", "pluggy<1"])],
)
async def test_requirements_that_cannot_be_met_are_named_before_anything_runs(
    runner: Runner, dependencies: list[str], named: list[str]
) -> None:
    failure = runner.prepare(await runner.plan("print('ran')", dependencies=dependencies))
    assert failure is not None
    assert failure.kind == "dependency_resolution"
    for one in named:
        assert one in failure.message


@pytest.mark.case("B036")
async def test_a_dead_index_is_one_sentence_soon_and_what_is_cached_still_works(runner: Runner) -> None:
    warm = await runner.plan(SHOW, args=["pluggy"], dependencies=["pluggy==1.5.0"])
    assert runner.run(warm).stdout == "pluggy=1.5.0\n"
    proxy = "http://127.0.0.1:9"
    runner.server |= {"HTTPS_PROXY": proxy, "https_proxy": proxy, "NO_PROXY": "", "no_proxy": ""}
    started = time.monotonic()
    failure = runner.prepare(await runner.plan("", dependencies=["attrs"]))
    assert time.monotonic() - started < 15
    assert failure is not None
    assert failure.kind == "network"
    assert " cannot be reached: " in failure.message
    again = await runner.plan(SHOW, args=["pluggy"], dependencies=["pluggy==1.5.0"])
    again = dataclasses.replace(again, prepare=tuple(offline(command) for command in again.prepare))
    assert runner.run(again).stdout == "pluggy=1.5.0\n"


@pytest.mark.case("B036")
async def test_what_is_not_cached_while_uv_is_offline_names_package_and_index(runner: Runner) -> None:
    runner.server["UV_OFFLINE"] = "1"
    failure = runner.prepare(await runner.plan("", dependencies=["attrs"]))
    assert failure is not None
    assert failure.kind == "network"
    assert "the package index" in failure.message
    assert "attrs was not found in the cache" in failure.message
