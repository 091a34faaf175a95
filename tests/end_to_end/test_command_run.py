"""`pyexec run`: live output and the program's exit status."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.helpers.commands import Command, line_of, rest_of
from tests.helpers.forks import PYEXEC
from tests.helpers.homes import environment
from tests.helpers.processes import alive, eventually


def test_a_file_runs_with_its_arguments_streams_apart_and_its_status(run: Command) -> None:
    (run.directory / "job.py").write_text(
        "import sys; print(sys.argv[1:]); print('to stderr', file=sys.stderr); sys.exit(4)"
    )
    ran = run("run", "--no-uv", "job.py", "-v", "--name", "x")
    assert (ran.status, ran.stdout, ran.stderr) == (4, "['-v', '--name', 'x']\n", "to stderr\n")


@pytest.mark.needs_uv
def test_uv_runs_it_by_default_and_brings_what_it_needs(run: Command) -> None:
    assert run.ok("run", "--with", "six<1.17", "-c", "import six; print(six.__version__)").startswith("1.")
    (job,) = json.loads(run.ok("jobs", "list", "--limit", "1", "--json"))["jobs"]
    assert (job["strategy"], job["dependencies"]) == ("uv-run", ["six<1.17"])


@pytest.mark.case("B188")
def test_output_appears_while_the_program_runs(run: Command) -> None:
    source = """
import os, time
print("first")
while not os.path.exists("seen"): time.sleep(0.02)
print("second")
raise SystemExit(4)
"""
    with run.running("run", "--no-uv", "-c", source) as process:
        assert line_of(process.stdout) == "first\n"
        (run.directory / "seen").touch()
        assert rest_of(process.stdout) == "second\n"
    assert process.returncode == 4


@pytest.mark.case("B188")
def test_a_reader_that_leaves_ends_the_program_without_a_traceback(run: Command) -> None:
    source = "import os, time\nprint(os.getpid())\nwhile True: print('more'); time.sleep(0.01)"
    done = subprocess.run(
        ["sh", "-c", '"$0" run --no-uv -c "$1" | head -1', PYEXEC, source],
        capture_output=True,
        text=True,
        cwd=run.directory,
        env=environment(run.home),
        timeout=150,
        check=True,
    )
    pid = int(done.stdout)
    eventually(lambda: not alive(pid))
    assert done.stderr == ""
    (job,) = json.loads(run.ok("jobs", "list", "--limit", "1", "--json"))["jobs"]
    assert job["state"] == "cancelled"


def test_ctrl_c_interrupts_the_program_and_not_us(run: Command) -> None:
    source = """
import time
print("begun", flush=True)
try:
    time.sleep(300)
except KeyboardInterrupt:
    print("cleaning up", flush=True)
    raise
"""
    with run.running("run", "--no-uv", "-c", source) as process:
        assert line_of(process.stdout) == "begun\n"
        process.send_signal(signal.SIGINT)
        assert rest_of(process.stdout) == "cleaning up\n"
        said = rest_of(process.stderr)
    assert process.returncode == 130
    assert "KeyboardInterrupt" in said
    assert "interrupted from the terminal" in said
    assert "pyexec/" not in said.replace(str(run.home), ""), "no frames of ours"


def test_standard_input_is_passed_on_when_asked(run: Command) -> None:
    source = "import sys; print(repr(sys.stdin.read()))"
    assert run.ok("run", "--no-uv", "-i", "-c", source, stdin="zwölf\nlines") == "'zwölf\\nlines'\n"
    assert run.ok("run", "--no-uv", "-c", source, stdin="not for you") == "''\n"


def test_variables_directory_time_out_and_label(run: Command, tmp_path: Path) -> None:
    (tmp_path / "some.env").write_text("A=file\nB=file\n")
    source = "import os; print(os.getcwd(), os.environ['A'], os.environ['B'])"
    options = ("--directory", str(tmp_path), "--env-file", "some.env", "--env", "B=call", "--label", "named")
    assert run.ok("run", "--no-uv", *options, "-c", source) == f"{tmp_path} file call\n"
    (job,) = json.loads(run.ok("jobs", "list", "--limit", "1", "--json"))["jobs"]
    assert (job["label"], job["directory"]) == ("named", str(tmp_path))
    ended = run("run", "--no-uv", "--timeout", "2", "-c", "print('kept'); import time; time.sleep(300)")
    assert (ended.status, ended.stdout) == (130, "kept\n")
    assert "pyexec: It ran longer than 2 s. It was ended with SIGINT." in ended.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("run", "gone.py"), 1, "error: script_path"),
        (("run",), 2, "Give a FILE to run, or -c CODE."),
        (("run", "--env", "novalue", "-c", "1"), 2, "'novalue' is not NAME=VALUE"),
        (("run", "--no-uv", "-p", "3.13", "-c", "1"), 1, "error: python_version needs use_uv=true"),
        (("nonsense",), 2, "No such command"),
        (("jobs", "show", "ffff"), 1, "error: No job begins with 'ffff'."),
    ],
    ids=["file", "nothing", "variable", "version", "command", "job"],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    run: Command, words: tuple[str, ...], status: int, said: str
) -> None:
    ran = run(*words)
    assert (ran.status, ran.stdout) == (status, "")
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_help_and_version_are_told(run: Command) -> None:
    for words in (("--help",), ("run", "-h"), ("serve", "--help")):
        assert run.ok(*words).startswith("Usage: pyexec")
    assert run.ok("--version").startswith("pyexec, version ")
