"""The program that measures another one, on its own: what it runs must not notice."""

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pyexec.sandbox.programs import PROFILER
from tests.helpers.processes import eventually

SHOWS_ITSELF = """\
import __main__, inspect, json, os, sys
def here(): return 1
print(sys.argv[1:], __name__, __file__ == os.path.abspath(sys.argv[0]), __spec__, __package__, __doc__)
print(__main__.here is here, inspect.getsource(here), sys.path[0] == os.path.dirname(__file__), json.MINE)
print(sorted(n for n in sys.modules if "profiler" in n))
"""
FAILS = """\
def inner(): return {}["gone"]
def outer():
    try:
        inner()
    except KeyError as error:
        raise RuntimeError("outer") from error
outer()
"""
POOL = """\
import multiprocessing, os, sys
class Square:
    def __call__(self, number): return number * number
if __name__ == "__main__":
    for method in ("spawn", "fork", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(Square(), [2, 3]))
    pid = os.fork()
    if pid == 0:
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
LATER = """\
import atexit, threading, time
def at_exit(): print("at exit")
def thread(): time.sleep(0.05); print("thread")
atexit.register(at_exit)
threading.Thread(target=thread).start()
print("main")
"""
WAITS = """\
import sys, time
def spin():
    while True: time.sleep(0.001)
print("waiting", flush=True)
try:
    spin()
finally:
    print("finally", flush=True)
"""
DEEP = """\
import sys
sys.setrecursionlimit(20_000)
def down(left): return 0 if left == 0 else down(left - 1)
down(5_000)
"""


def command(folder: Path, script: str, args: Sequence[str] = (), mode: str = "calls") -> list[str]:
    (folder / "artifacts").mkdir()
    (folder / "script.py").write_text(script)
    return [sys.executable, str(PROFILER), mode, str(folder / "script.py"), *args]


def environment(folder: Path) -> dict[str, str]:
    # Coverage would import modules that a program is to find for itself.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    return {**ours, "PYEXEC_ARTIFACTS": str(folder / "artifacts"), "PYTHONPATH": ""}


def run(folder: Path, script: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder, script, args), env=environment(folder), capture_output=True, text=True, timeout=150
    )


def plainly(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the same without us."""
    argv = [sys.executable, str(folder / "script.py"), *args]
    return subprocess.run(argv, env=environment(folder), capture_output=True, text=True, timeout=150)


def profile(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "artifacts" / "profile.json").read_bytes())


def functions(folder: Path) -> list[str]:
    return [row[0] for row in profile(folder)["rows"]]


def test_a_program_finds_itself_as_if_it_ran_alone(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("MINE = 'mine'\n")
    measured = run(tmp_path, SHOWS_ITSELF, "a", "b c")
    alone = plainly(tmp_path, "a", "b c")
    assert measured.stdout == alone.stdout
    assert "mine" in measured.stdout
    assert measured.stderr == ""


@pytest.mark.parametrize(
    "script",
    [FAILS, "x = (\n", "raise SystemExit(3)", "import sys; sys.exit('said')", "1 / 0", "import os; os.abort()"],
    ids=["raises", "syntax", "exits", "exits-with-text", "divides", "aborts"],
)
def test_it_ends_as_it_would_alone_with_its_own_traceback(tmp_path: Path, script: str) -> None:
    measured = run(tmp_path, script)
    alone = plainly(tmp_path)
    assert (measured.returncode, measured.stdout, measured.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_its_processes_run_and_are_not_measured(tmp_path: Path) -> None:
    measured = run(tmp_path, POOL)
    assert measured.stderr == ""
    assert measured.stdout == "[4, 9]\n" * 3 + "7\n"
    assert "<module>" in functions(tmp_path)
    assert "Square.__call__" not in functions(tmp_path)


def test_threads_and_what_is_called_at_exit_come_before_the_end_of_the_measurement(tmp_path: Path) -> None:
    measured = run(tmp_path, LATER)
    assert measured.stdout == "main\nthread\nat exit\n"
    assert "at_exit" in functions(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_measured_up_to_a_signal_is_written(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    with out.open("wb") as file:
        process = subprocess.Popen(
            command(tmp_path, WAITS), env=environment(tmp_path), stdout=file, stderr=subprocess.PIPE, text=True
        )
    eventually(lambda: out.read_text().startswith("waiting"))
    process.send_signal(number)
    _out, stderr = process.communicate(timeout=60)
    assert process.returncode == -number
    assert "spin" in functions(tmp_path)
    assert ("KeyboardInterrupt" in stderr) == (number == signal.SIGINT)
    assert "profiler" not in stderr


def test_deep_recursion_is_no_trouble(tmp_path: Path) -> None:
    measured = run(tmp_path, DEEP)
    assert (measured.returncode, measured.stderr) == (0, "")
    (row,) = [row for row in profile(tmp_path)["rows"] if row[0] == "down"]
    assert row[5] == 5_001


def test_a_name_cannot_break_out_of_the_flame_graph(tmp_path: Path) -> None:
    script = "f = eval(compile('lambda: sum(range(3000000))', '</script><img src=http://x/>', 'eval'))\nf()\n"
    assert run(tmp_path, script).returncode == 0
    page = (tmp_path / "artifacts" / "flamegraph.html").read_text("utf-8")
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "default-src 'none'" in page


def test_it_is_written_for_the_oldest_python_that_runs_scripts() -> None:
    for path in PROFILER.parent.glob("*.py"):
        ast.parse(path.read_text("utf-8"), str(path), feature_version=(3, 8))


def test_what_comes_back_to_a_function_is_not_counted_twice_in_the_flame_graph(tmp_path: Path) -> None:
    assert run(tmp_path, "import asyncio.unix_events").returncode == 0
    page = (tmp_path / "artifacts" / "flamegraph.html").read_text("utf-8")
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data["whole"] == pytest.approx(profile(tmp_path)["total"], rel=0.05)
    below = [0.0] * len(data["nodes"])
    for parent, _frame, seconds in data["nodes"]:
        if parent >= 0:
            below[parent] += seconds
    assert all(part <= node[2] * 1.001 for part, node in zip(below, data["nodes"], strict=True))
