"""Continuous integration runs few tests that failed once more, alone; what passes only then is named."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "again.py"
TESTS = """
import os, pathlib, pytest

def first_time(name):
    there = pathlib.Path(name).exists()
    pathlib.Path(name).touch()
    return not there

def alone():
    return "PYTEST_XDIST_WORKER" not in os.environ

@pytest.mark.parametrize("number", range(3))
def test_good(number):
    assert first_time(f"good-{number}"), "nobody runs it again"
"""
SHAKY = """
def test_shaky():
    assert not first_time("shaky")
"""
BUSY = """
def test_busy():
    assert alone()
"""
BAD = """
def test_bad():
    assert False
"""
MANY = """
@pytest.mark.parametrize("number", range(6))
def test_many(number):
    assert not first_time(f"many-{number}")
"""
MEASURED = """
import measured
def test_shaky():
    if first_time("begun"):
        measured.first()
        assert False
    measured.second()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return tmp_path


def run(folder: Path, tests: str, *command: str) -> tuple[int, str, list[str]]:
    """Run these tests; return the status, what was said, and the names of those that passed only alone."""
    (folder / "test_it.py").write_text(TESTS + tests)
    told = folder / "told"
    done = subprocess.run(
        [sys.executable, SCRIPT, told, *(command or (sys.executable, "-m", "pytest", "-p", "xdist", "-n", "0"))],
        cwd=folder,
        env={**outside(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, told.read_text().splitlines() if told.exists() else []


def outside() -> dict[str, str]:
    """Return variables as they are where no tests run yet."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


def named(*names: str) -> list[str]:
    return [f"test_it.py::{name} (Python {sys.version_info[0]}.{sys.version_info[1]})" for name in names]


def test_nothing_is_run_again_where_all_pass(folder: Path) -> None:
    status, said, told = run(folder, "")
    assert (status, told) == (0, [])
    assert "alone" not in said


def test_one_that_passes_alone_is_named_and_no_failure(folder: Path) -> None:
    parallel = (sys.executable, "-m", "pytest", "-p", "xdist", "-n", "1", "--dist", "loadfile")
    status, said, told = run(folder, BUSY, *parallel)
    assert (status, told) == (0, named("test_busy"))
    assert said.endswith("Passed only when run again alone:\n    test_it.py::test_busy\n")
    assert "1 passed" in said.partition("Again, alone:")[2], "and only that one"


def test_one_that_fails_again_is_a_failure(folder: Path) -> None:
    status, said, told = run(folder, SHAKY + BAD)
    assert (status, told) == (1, [])
    assert "Again, alone:\n    test_it.py::test_shaky\n    test_it.py::test_bad\n" in said


def test_more_than_five_are_failures_at_once(folder: Path) -> None:
    status, said, told = run(folder, MANY)
    assert (status, told) == (1, [])
    assert said.endswith("6 tests failed; up to 5 would have been run again alone.\n")


def test_failures_of_an_earlier_run_do_not_count(folder: Path) -> None:
    left = folder / ".pytest_cache/v/cache/lastfailed"
    left.parent.mkdir(parents=True)
    left.write_text(json.dumps({f"test_it.py::test_good[{number}]": True for number in range(3)}))
    assert run(folder, SHAKY)[::2] == (0, named("test_shaky"))


def test_a_run_that_came_to_no_end_is_not_made_good(folder: Path) -> None:
    stops = "\ndef test_stops():\n    if first_time('stopped'): pytest.exit('enough', 3)\n"
    status, _said, told = run(folder, SHAKY + stops)
    assert (status, told) == (3, [])


def test_what_both_runs_have_measured_counts_together(folder: Path) -> None:
    (folder / "measured.py").write_text(
        "def first():\n    return 1\ndef second():\n    return 2\ndef third():\n    return 3\n"
    )
    with (folder / "pyproject.toml").open("a") as file:
        file.write('[tool.coverage.run]\nparallel = true\nsource_pkgs = ["measured"]\n')
    coverage = (sys.executable, "-m", "coverage")

    status, _said, told = run(folder, MEASURED, *coverage, "run", "-m", "pytest", "-p", "xdist", "-n", "0")

    assert (status, told) == (0, named("test_shaky"))
    subprocess.run([*coverage, "combine", "--quiet"], cwd=folder, check=True)
    report = [*coverage, "report", "--precision=1", "--fail-under"]
    done = subprocess.run([*report, "83.3"], cwd=folder, capture_output=True, text=True, check=False)
    assert "83.3%" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
    assert subprocess.run([*report, "83.4"], cwd=folder, capture_output=True, check=False).returncode == 2


LONG = """
@pytest.mark.exhaustive
def test_long():
    pass
"""


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.exhaustive), "1"])
def test_long_proofs_are_left_out_and_said_to_be_unless_they_are_asked_for(folder: Path, workers: str) -> None:
    tests = Path(__file__).parents[1]
    (folder / "conftest.py").write_text("from tests.conftest import *\nfrom tests.conftest import _left_out\n")
    (folder / "test_it.py").write_text(TESTS + LONG)
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["exhaustive", "usual_packages"]\n')
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-n", workers]
    env = {**outside(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(tests.parent)}

    def said(*options: str) -> str:
        return subprocess.run(
            [*command, *options], cwd=folder, env=env, capture_output=True, text=True, check=True
        ).stdout

    assert '1 long proof was left out; they run with make test ARGS="--exhaustive".' in said("-k", "long or 0")
    assert "2 passed" in (everything := said("--exhaustive", "-k", "long or 1"))
    assert "left out" not in everything
