"""What happened to a program, told by one convention."""

import hashlib
import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.domain.executions import ExecutionRequest, Process
from pyexec.domain.principals import Principal
from pyexec.executions.advice import advice_for, error_of
from tests.helpers.processes import alive
from tests.integration.engine import Engine, gone, outcome_of


def request(**values: Any) -> ExecutionRequest:
    return ExecutionRequest(use_uv=False, **values)


@pytest.mark.parametrize("code", [0, *(pytest.param(code, marks=pytest.mark.exhaustive) for code in (1, 3)), 255])
async def test_an_exit_code_is_the_programs_own(engine: Engine, code: int) -> None:
    execution = await engine.run(f"import sys; print('out'); print('err', file=sys.stderr); sys.exit({code})")

    outcome = outcome_of(execution)
    assert execution.state == ("completed" if code == 0 else "failed")
    assert (outcome.kind, outcome.exit_code, outcome.signal, outcome.stopped_by) == ("exited", code, None, None)
    assert (await engine.stdout(execution), await engine.stderr(execution)) == ("out\n", "err\n")
    assert (outcome.stdout_bytes, outcome.stderr_bytes) == (4, 4)


@pytest.mark.case("B010")
@pytest.mark.parametrize(
    "name",
    [
        "SIGSEGV",
        "SIGKILL",
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("SIGTERM", "SIGUSR1", "SIGXCPU")),
    ],
)
async def test_a_program_ended_by_a_signal_is_failed_with_128_more_and_its_name(engine: Engine, name: str) -> None:
    execution = await engine.run(f"import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.{name})")

    outcome = outcome_of(execution)
    number = getattr(signal, name)
    assert (execution.state, outcome.kind) == ("failed", "signalled")
    assert (outcome.exit_code, outcome.signal, outcome.stopped_by) == (128 + number, name, None)
    assert await engine.stdout(execution) == "x\n"


async def test_a_record_tells_when_it_ran_and_what_it_used(engine: Engine) -> None:
    execution = await engine.run(
        "data = bytearray(80_000_000)\nfor start in range(0, len(data), 4096): data[start] = 1\nprint(sum(data))"
    )

    outcome = outcome_of(execution)
    assert outcome.started_at is not None
    assert execution.created_at <= outcome.started_at <= outcome.ended_at
    assert execution.started_at == outcome.started_at
    assert outcome.user_cpu_seconds > 0
    assert 80_000_000 < outcome.peak_rss_bytes < 200_000_000
    assert await engine.get(execution) == execution


@pytest.mark.case("B020")
async def test_a_traceback_shows_the_users_lines_and_none_of_ours(engine: Engine) -> None:
    execution = await engine.run("def inner(x):\n    return 1/x\n\ndef outer():\n    return inner(0)\n\nouter()\n")

    stderr = await engine.stderr(execution)
    shown = [line.strip() for line in stderr.splitlines() if "line " in line or "inner(0)" in line or "1/x" in line]
    assert [word for line in shown for word in line.split(", ") if word.startswith("line ")] == [
        "line 7",
        "line 5",
        "line 2",
    ]
    assert stderr.count("File ") == 3
    assert error_of(execution, stderr) == "ZeroDivisionError: division by zero"


@pytest.mark.case("B001")
async def test_a_program_that_asks_finds_an_empty_stdin(engine: Engine) -> None:
    execution = await engine.run("print('before', flush=True)\ninput('name? ')")

    stderr = await engine.stderr(execution)
    assert execution.state == "failed"
    assert (await engine.stdout(execution)).startswith("before\n")
    assert "EOFError" in stderr
    assert "no stdin was given" in (advice_for(execution, stderr) or "")


@pytest.mark.case("B001")
@pytest.mark.parametrize("text", ["Al\n", "é€😀\r\n\0\x1a\n", "no newline", "x" * 3_000_000 + "\n"])
async def test_a_program_reads_the_stdin_that_was_given(engine: Engine, text: str) -> None:
    execution = await engine.run(
        "import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())", stdin=text
    )

    assert await engine.stdout(execution) == hashlib.sha256(text.encode()).hexdigest() + "\n"


async def test_stdin_text_is_kept_nowhere(engine: Engine) -> None:
    execution = await engine.submit(
        "import time; input(); print('read', flush=True); time.sleep(60)", stdin="s3cret-text\n"
    )
    engine.printed(execution)
    await engine.stop(execution, "kill")

    kept = [path for path in engine.home.rglob("*") if path.is_file() and b"s3cret-text" in path.read_bytes()]
    assert kept == []


@pytest.mark.case("B123")
async def test_a_program_killed_from_outside_is_failed_and_can_be_run_again(engine: Engine) -> None:
    code = "import time; print('up', flush=True); time.sleep(60)"
    execution = await engine.submit(code)
    engine.printed(execution)
    os.kill(engine.program(execution), 9)

    execution = await engine.wait(execution)

    outcome = outcome_of(execution)
    assert (execution.state, outcome.kind, outcome.signal, outcome.exit_code) == ("failed", "signalled", "SIGKILL", 137)
    assert await engine.stop(execution) == execution
    again = await engine.submit(code)
    assert engine.printed(again) == ["up"]
    await engine.stop(again, "kill")


@pytest.mark.case("B124")
async def test_what_daemonises_has_exited_and_what_it_left_is_named_and_ended(engine: Engine) -> None:
    execution = await engine.run(
        "import os, sys, time\n"
        "read, write = os.pipe()\n"
        "if os.fork():\n"
        "    print(os.read(read, 20).decode(), flush=True)\n"
        "    os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "os.write(write, str(os.getpid()).encode())\n"
        "time.sleep(30)\n"
    )

    (pid,) = engine.pids(execution, 1)
    outcome = outcome_of(execution)
    assert (execution.state, outcome.kind, outcome.exit_code) == ("completed", "exited", 0)
    assert [left.pid for left in outcome.leftover_processes] == [pid]
    assert not alive(pid)


@pytest.mark.case("B004")
async def test_an_orphan_that_holds_the_pipe_is_not_waited_for(engine_by: Engine) -> None:
    execution = await engine_by.run(
        "import subprocess; print('done', flush=True); print(subprocess.Popen(['sleep', '60']).pid)"
    )

    outcome = outcome_of(execution)
    pid = int(engine_by.printed(execution, 2)[1])
    assert (execution.state, outcome.exit_code) == ("completed", 0)
    assert outcome.leftover_processes == (Process(pid=pid, command="sleep"),)
    assert outcome.started_at is not None
    assert outcome.ended_at - outcome.started_at < 3.0
    assert not alive(pid)


async def test_an_orphan_that_resists_is_killed(engine_by: Engine) -> None:
    execution = await engine_by.run(
        "import os, signal, time\n"
        "read, write = os.pipe()\n"
        "if os.fork():\n"
        "    print(os.read(read, 20).decode(), flush=True)\n"
        "    os._exit(5)\n"
        "os.setsid()\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "os.write(write, str(os.getpid()).encode())\n"
        "time.sleep(60)\n"
    )

    assert (execution.state, outcome_of(execution).exit_code) == ("failed", 5)
    gone(engine_by.pids(execution, 1))


async def test_children_that_end_soon_after_the_program_are_left_to_finish(engine: Engine) -> None:
    execution = await engine.run(
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    time.sleep(0.01)\n"
        "    os.write(1, b'child\\n')\n"
        "    os._exit(0)\n"
        "os.write(1, b'parent\\n')\n"
        "os._exit(0)\n"
    )

    assert outcome_of(execution).leftover_processes == ()
    assert await engine.stdout(execution) == "parent\nchild\n"


async def test_what_a_program_left_is_named_without_its_arguments(engine: Engine) -> None:
    execution = await engine.run("import subprocess; subprocess.Popen(['sh', '-c', 'sleep 60; : s3cret-word'])")

    assert "s3cret-word" not in json.dumps([left.command for left in outcome_of(execution).leftover_processes])


@pytest.mark.case("B011")
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
async def test_inline_code_can_start_workers(engine: Engine, method: str) -> None:
    execution = await engine.run(
        "import multiprocessing as mp\n"
        "def f(x): return x * x\n"
        "if __name__ == '__main__':\n"
        f"    with mp.get_context('{method}').Pool(2) as pool: print(pool.map(f, [1, 2, 3]))\n",
        timeout_seconds=20,
    )

    assert (execution.state, await engine.stdout(execution)) == ("completed", "[1, 4, 9]\n")


@pytest.mark.case("B015")
async def test_a_source_file_in_another_encoding_is_the_users_matter(engine: Engine) -> None:
    script = engine.directory / "latin.py"
    script.write_bytes(b"x = '\xe9'\nprint(len(x))\n")
    bad = await engine.executions.submit(engine.principal, request(script_path="latin.py"))
    bad = await engine.wait(bad)
    assert bad.state == "failed"
    stderr = await engine.stderr(bad)
    assert "SyntaxError" in stderr
    assert "latin.py" in stderr

    script.write_bytes(b"# -*- coding: latin-1 -*-\n" + script.read_bytes())
    good = await engine.wait(await engine.executions.submit(engine.principal, request(script_path="latin.py")))
    assert (good.state, await engine.stdout(good)) == ("completed", "1\n")


async def test_a_directory_whose_name_is_no_text_can_be_used(engine: Engine) -> None:
    directory = engine.directory / "\udcff"
    directory.mkdir()
    (directory / "main.py").write_text("import os; print(ascii(os.path.basename(os.getcwd())))")

    execution = await engine.executions.submit(
        engine.principal, request(directory=str(directory), script_path="main.py")
    )

    execution = await engine.wait(execution)
    assert (execution.state, await engine.stdout(execution)) == ("completed", "'\\udcff'\n")


async def test_a_directory_that_is_gone_when_it_is_its_turn_is_said(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine(concurrent=1)
    first = await engine.submit("import time; print('up', flush=True); time.sleep(60)")
    engine.printed(first)
    directory = engine.directory / "soon-gone"
    directory.mkdir()
    second = await engine.submit("print(1)", directory=str(directory))
    directory.rmdir()
    await engine.stop(first, "kill")

    second = await engine.wait(second)

    outcome = outcome_of(second)
    assert (second.state, outcome.kind, outcome.exit_code) == ("failed", "start_failed", None)
    assert outcome.reason == f"could not enter the directory {directory}: No such file or directory"


async def test_a_refused_request_leaves_nothing_behind(engine: Engine) -> None:
    with pytest.raises(NotFoundError):
        await engine.executions.submit(engine.principal, request(script_path="gone.py"))
    with pytest.raises(InvalidArgumentError):
        await engine.submit("print(1)", python_version="3.1")

    assert list((engine.home / "executions").iterdir()) == []
    assert await engine.executions.newest(engine.principal, states=None, limit=9) == ([], 0)


async def test_somebody_elses_job_answers_like_one_that_does_not_exist(engine: Engine) -> None:
    execution = await engine.submit("import time; print('up', flush=True); time.sleep(60)")
    engine.printed(execution)
    other = Principal(issuer="local", subject="somebody else")
    messages: list[str] = []
    for wanted in (execution.id, "f" * 32):
        with pytest.raises(NotFoundError) as refusal:
            await engine.executions.stop(other, wanted, "kill", "")
        messages.append(refusal.value.sentence().replace(wanted, "ID"))

    assert messages[0] == messages[1]
    assert alive(engine.program(execution))
    await engine.stop(execution, "kill")


async def test_variables_reach_the_program_and_secrets_stay_out_of_the_records(engine: Engine) -> None:
    execution = await engine.run("import os; print(os.environ['MY_VAR'])", env_vars={"MY_VAR": "v4lue-of-it"})

    assert await engine.stdout(execution) == "v4lue-of-it\n"
    kept = {path.name for path in engine.home.rglob("*") if path.is_file() and b"v4lue-of-it" in path.read_bytes()}
    assert kept == {"stdout"}
