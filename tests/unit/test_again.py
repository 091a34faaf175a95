"""Continuous integration runs few tests that failed once more, alone; what passes only then is named."""

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
    assert alone()
"""
BAD = """
def test_bad():
    assert False
"""
MANY = """
@pytest.mark.parametrize("number", range(6))
def test_many(number):
    assert alone()
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
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-p no:anyio"\n')
    return tmp_path


def run(folder: Path, tests: str, *command: str) -> tuple[int, str, list[str]]:
    """Run these tests; return the status, what was said, and the names of those that passed only alone."""
    (folder / "test_it.py").write_text(TESTS + tests)
    for ran in folder.glob("good-*"):
        ran.unlink()
    told = folder / "told"
    arguments = command or (sys.executable, "-m", "pytest", "-n", "1", "--dist", "loadfile")
    done = subprocess.run(
        [sys.executable, SCRIPT, told, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, told.read_text().splitlines() if told.exists() else []


def named(*names: str) -> list[str]:
    return [f"test_it.py::{name} (Python {sys.version_info[0]}.{sys.version_info[1]})" for name in names]


def test_nothing_is_run_again_where_all_pass(folder: Path) -> None:
    status, said, told = run(folder, "")
    assert (status, told) == (0, [])
    assert "alone" not in said


def test_one_that_passes_alone_is_named_and_no_failure(folder: Path) -> None:
    status, said, told = run(folder, SHAKY)
    assert (status, told) == (0, named("test_shaky"))
    assert said.endswith("Passed only when run again alone:\n    test_it.py::test_shaky\n")
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
    run(folder, MANY)
    assert run(folder, SHAKY)[::2] == (0, named("test_shaky"))


def test_a_run_that_came_to_no_end_is_not_made_good(folder: Path) -> None:
    status, _said, told = run(folder, SHAKY + "\nraise SystemError('while collecting')\n")
    assert (status != 0, told) == (True, [])
    status, _said, told = run(
        folder, "\ndef test_stops():\n    if not alone(): pytest.exit('enough', 3)\n" + BAD.replace("bad", "a_bad")
    )
    assert (status != 0, told) == (True, [])


def test_what_both_runs_have_measured_counts_together(folder: Path) -> None:
    (folder / "measured.py").write_text(
        "def first():\n    return 1\ndef second():\n    return 2\ndef third():\n    return 3\n"
    )
    with (folder / "pyproject.toml").open("a") as file:
        file.write('[tool.coverage.run]\nparallel = true\nsource_pkgs = ["measured"]\n')
    coverage = (sys.executable, "-m", "coverage")

    status, _said, told = run(folder, MEASURED, *coverage, "run", "-m", "pytest", "-n", "0")

    assert (status, told) == (0, named("test_shaky"))
    subprocess.run([*coverage, "combine", "--quiet"], cwd=folder, check=True)
    report = [*coverage, "report", "--precision=1", "--fail-under"]
    done = subprocess.run([*report, "83.3"], cwd=folder, capture_output=True, text=True, check=False)
    assert "83.3%" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
    assert subprocess.run([*report, "83.4"], cwd=folder, capture_output=True, check=False).returncode == 2
