import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from pyexec.processes import commands
from pyexec.processes.commands import Finished, run_tool
from tests.helpers.processes import eventually

ENV = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"}


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", code, *arguments]


def test_a_tool_says_how_it_ended_and_what_it_wrote_where() -> None:
    code = "import sys; print('out'); print('one\\ntwo', file=sys.stderr); sys.exit(7)"
    assert run_tool(python(code), env=ENV) == Finished(exit_code=7, stdout="out\n", stderr="one\ntwo\n")


def test_what_a_tool_wrote_is_not_in_what_is_shown_of_it() -> None:
    assert "SECRET" not in repr(Finished(exit_code=0, stdout="SECRET", stderr="SECRET"))


def test_a_tool_reads_what_it_is_given_however_much() -> None:
    text = "grüße\n" * 100_000
    code = "import sys; sys.stdout.write(sys.stdin.read())"
    assert run_tool(python(code), env=ENV, stdin=text).stdout == text
    assert run_tool(python(code), env=ENV).stdout == ""


def test_a_tool_that_reads_nothing_is_no_failure() -> None:
    assert run_tool(["/bin/true"], env=ENV, stdin="x" * 1_000_000).exit_code == 0


def test_a_tool_has_the_variables_it_is_given_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "1")
    assert run_tool(["/usr/bin/env"], env={"THEIRS": "a b"}).stdout == "THEIRS=a b\n"


def test_a_tool_runs_in_the_folder_it_is_given(tmp_path: Path) -> None:
    assert run_tool(["/bin/pwd"], env=ENV, cwd=str(tmp_path)).stdout == f"{tmp_path}\n"
    assert run_tool(["/bin/pwd"], env=ENV).stdout == f"{os.getcwd()}\n"


def test_lines_are_heard_as_they_come(tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    os.mkfifo(go_on)
    code = "import sys; print('first', file=sys.stderr); open(sys.argv[1]).close(); print('last', file=sys.stderr)"
    heard: list[str] = []

    def hear(line: str) -> None:
        heard.append(line)
        if line == "first":  # The tool waits for this: it would never end if lines were heard at its end only.
            go_on.write_text("")

    finished = run_tool(python(code, str(go_on)), env=ENV, on_line=hear)
    assert heard == ["first", "last"]
    assert finished.stderr == "first\nlast\n"


def test_lines_are_heard_by_another_thread_and_all_of_them_before_the_end() -> None:
    threads: set[int] = set()
    lines: list[str] = []

    def hear(line: str) -> None:
        threads.add(threading.get_ident())
        lines.append(line)

    code = "import sys\nfor number in range(5000): print(number, file=sys.stderr)"
    run_tool(python(code), env=ENV, on_line=hear)
    assert lines == [str(number) for number in range(5000)]
    assert threads.isdisjoint({threading.get_ident()})


def test_a_last_line_may_lack_its_end_and_bytes_that_are_no_text_are_replaced() -> None:
    lines: list[str] = []
    code = "import os; os.write(1, b'\\xff'); os.write(2, b'bad \\xff\\r\\nlast')"
    finished = run_tool(python(code), env=ENV, on_line=lines.append)
    assert lines == ["bad \N{REPLACEMENT CHARACTER}", "last"]
    assert finished.stdout == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_tool_that_is_ended_by_a_signal_has_a_negative_exit_code(number: signal.Signals) -> None:
    code = f"import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.kill(os.getpid(), {number:d})"
    assert run_tool(python(code), env=ENV).exit_code == -number


def test_ticks_come_while_a_tool_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "TICK_SECONDS", 0.01)
    go_on = tmp_path / "go on"
    os.mkfifo(go_on)
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 3:  # The tool waits for this.
            go_on.write_text("")

    assert run_tool(python("import sys; open(sys.argv[1]).close()", str(go_on)), env=ENV, on_tick=tick).exit_code == 0
    assert ticks >= 3


def test_a_tool_inherits_the_files_it_is_given_under_the_same_numbers_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("given")
    with open(tmp_path / "given") as given, open(tmp_path / "given") as other:
        os.set_inheritable(other.fileno(), True)
        fd = given.fileno()
        code = (
            "import os, sys; print(open(f'/dev/fd/{sys.argv[1]}').read())\n"
            "here = [one for one in os.listdir('/dev/fd') if os.path.exists(f'/dev/fd/{one}')]\n"
            "print(sorted(set(map(int, here)) - {0, 1, 2}))"
        )
        finished = run_tool(python(code, str(fd)), env=ENV, descriptors=[fd])
    assert finished.stdout == f"given\n[{fd}]\n"


def test_a_tool_that_cannot_be_started_is_an_error_and_leaves_nothing_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        run_tool(["/gone/uv"], env=ENV)
    eventually(lambda: len(os.listdir("/proc/self/fd")) == before)


def test_whatever_interrupts_the_waiting_ends_the_tool(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def interrupt() -> None:
        if pid_file.exists() and pid_file.read_text():
            raise KeyboardInterrupt

    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        run_tool(python(code, str(pid_file)), env=ENV, on_tick=interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
