"""Inline code runs as a file of its own, and as `python file.py` would in the call's directory."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.executions import Harness
from tests.helpers.pythons import pythons
from tests.integration.engine import Engine

# What a program can see of the way it was started.
PROBE = """\
import json, os, subprocess, sys
seen = {
    "path": sys.path,
    "names": sorted(globals()),
    "name": __name__,
    "doc": __doc__,
    "spec": __spec__,
    "loader": type(__loader__).__qualname__,
    "loads itself": __loader__.path == __file__ == sys.argv[0],
    "is main": sys.modules["__main__"].__dict__ is globals(),
    "called by": sys._getframe().f_back,
    "arguments": sys.argv[1:],
    "cwd": os.getcwd(),
    "flags": str(sys.flags),
    "modules": sorted(name for name in sys.modules if not name.startswith("encodings")),
    "loader class": sys.modules["_frozen_importlib_external"].SourceFileLoader.__qualname__,
    "environment": {n: v for n, v in os.environ.items() if not n.startswith(("PYEXEC_E", "PYEXEC_H", "_", "PWD"))},
}
child = [sys.executable, "-c", "import os, sys, json; print(json.dumps([sys.path, os.environ.get('PYTHONPATH')]))"]
seen["a child"] = json.loads(subprocess.run(child, stdout=subprocess.PIPE, check=True).stdout)
import neighbour, script
seen["neighbours"] = [neighbour.__file__, script.__file__]
print(json.dumps(seen))
"""
WORKERS = """\
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import neighbour

class Number:
    def __init__(self, value):
        self.value = value

def square(number):
    return neighbour.same(number.value) ** 2

if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
            print(method, list(pool.map(square, map(Number, (1, 2, 3)))))
"""
FAILS = """\
import inspect, neighbour

def first(number):
    return 1 / number  # here

print(inspect.getsource(first))
first(0)
"""


@pytest.fixture(scope="module")
def shared_engine(module_home: Path) -> Iterator[Engine]:
    with Engine(module_home) as engine:
        yield engine


def few_pythons() -> list[str]:
    """Return the oldest version that is here, ours and the newest."""
    versions = list(pythons())
    return sorted({versions[0], f"3.{sys.version_info.minor}", versions[-1]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory to run in, with modules in it."""
    (tmp_path / "neighbour.py").write_text("def same(value):\n    return value\n")
    (tmp_path / "script.py").write_text("# Called as the file that inline code is put into.\n")
    return tmp_path


@pytest.fixture(
    params=[name if name in few_pythons() else pytest.param(name, marks=pytest.mark.exhaustive) for name in pythons()]
)
def python(request: pytest.FixtureRequest) -> Path:
    return pythons()[request.param]


async def run(engine: Engine, code: str, folder: Path, python: Path | None = None, **request: Any) -> tuple[str, str]:
    """Run inline code on a Python as it is; return what it printed."""
    if python is not None:
        request["env_vars"] = {"PATH": f"{python.parent}:{os.environ['PATH']}", **request.get("env_vars", {})}
        request |= {"use_uv": True, "python_version": str(python)}
    execution = await engine.run(code, directory=str(folder), **request)
    output = await engine.output(execution)
    return output.stdout.text, output.stderr.text


async def test_a_program_sees_what_python_file_would_show_it(shared_engine: Engine, folder: Path, python: Path) -> None:
    env_vars = {"PYTHONPATH": "/somewhere:/else", "PYTHONDONTWRITEBYTECODE": "1"}
    before = sorted(folder.iterdir())
    stdout, stderr = await run(shared_engine, PROBE, folder, python, args=("a", "b c"), env_vars=env_vars)
    assert stdout, stderr
    assert sorted(folder.iterdir()) == before, "no file appears in the directory"
    inline = json.loads(stdout)
    (folder / "file.py").write_text(PROBE)
    as_file = subprocess.run(
        [python, folder / "file.py", "a", "b c"],
        cwd=folder,
        env=inline["environment"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert inline == json.loads(as_file.stdout)
    assert inline["path"][0] == str(folder)
    assert inline["called by"] is None


@pytest.mark.case("B011")
@pytest.mark.parametrize("python", few_pythons(), indirect=True)
async def test_worker_processes_find_the_programs_functions_and_its_neighbours(
    shared_engine: Engine, folder: Path, python: Path
) -> None:
    stdout, stderr = await run(shared_engine, WORKERS, folder, python, timeout_seconds=60)
    results = "[1, 4, 9]"
    assert stdout == f"spawn {results}\nforkserver {results}\n", stderr


@pytest.mark.parametrize("python", few_pythons(), indirect=True)
async def test_the_source_is_there_for_inspect_and_for_tracebacks(
    shared_engine: Engine, folder: Path, python: Path
) -> None:
    stdout, stderr = await run(shared_engine, FAILS, folder, python)
    assert stdout == "def first(number):\n    return 1 / number  # here\n\n"
    assert "return 1 / number  # here" in stderr
    assert stderr.count("  File ") == 2, "the module and the function, and nothing of ours"


async def test_a_safe_path_holds_neither_the_directory_nor_the_codes_own_folder(
    shared_engine: Engine, folder: Path
) -> None:
    code = "import sys\nprint(sys.path)\nimport neighbour"
    stdout, stderr = await run(shared_engine, code, folder, env_vars={"PYTHONSAFEPATH": "1"})
    assert str(folder) not in stdout
    assert str(shared_engine.home) not in stdout
    assert "No module named 'neighbour'" in stderr


async def test_somebody_elses_sitecustomize_is_imported_as_ever(shared_engine: Engine, folder: Path) -> None:
    others = folder / "others"
    others.mkdir()
    (others / "sitecustomize.py").write_text("import sys\nsys.customized = [__file__]\n")
    code = "import sys, sitecustomize, neighbour\nprint(sys.customized == [sitecustomize.__file__], sys.path[0])"
    stdout, stderr = await run(shared_engine, code, folder, env_vars={"PYTHONPATH": str(others)})
    assert stdout == f"True {folder}\n", stderr
    (others / "sitecustomize.py").write_text("raise ValueError('theirs')\n")
    stdout, stderr = await run(
        shared_engine, "import neighbour; print('ran')", folder, env_vars={"PYTHONPATH": str(others)}
    )
    assert (stdout, "theirs" in stderr) == ("ran\n", True), "what is wrong with it is said as ever"


async def test_a_sitecustomize_in_the_directory_is_no_part_of_the_start(shared_engine: Engine, folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("raise SystemExit('not mine')\n")
    stdout, stderr = await run(shared_engine, "import neighbour; print('ran')", folder)
    assert stdout == "ran\n", stderr


async def test_a_directory_behind_a_link_is_on_the_path_as_what_it_is(shared_engine: Engine, folder: Path) -> None:
    link = folder.with_name(f"{folder.name}-link")
    link.symlink_to(folder)
    stdout, _stderr = await run(shared_engine, "import sys, neighbour; print(sys.path[0])", link)
    assert stdout == f"{folder}\n"


@pytest.mark.parametrize(
    "harness",
    [
        Harness(options=("-m", "trace", "--listfuncs")),
        Harness(options=("-X", "utf8")),
        Harness(before=("/usr/bin/env", "SOME=thing")),
        Harness(before=(sys.executable, "-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])")),
    ],
    ids=["a module", "an option", "a program before", "a Python before"],
)
async def test_a_tool_around_the_program_leaves_it_its_neighbours(
    shared_engine: Engine, folder: Path, harness: Harness
) -> None:
    code = "import os, neighbour; print('ran', 'PYTHONPATH' in os.environ, 'PYEXEC_INLINE' in os.environ)"
    stdout, stderr = await run(shared_engine, code, folder, harness=harness)
    assert stdout.startswith("ran False False\n"), stderr
