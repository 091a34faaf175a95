"""Sessions: state stays, an end is told, and whoever is killed, nothing is started anew in silence."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyexec.domain.errors import (
    InvalidArgumentError,
    NotFoundError,
    SessionBusyError,
    SessionEndedError,
)
from pyexec.domain.executions import Execution, ExecutionRequest, Harness
from pyexec.domain.principals import Principal
from tests.helpers.processes import alive, eventually
from tests.helpers.waiting import eventually as soon
from tests.integration.sandboxes import SETTINGS, SandboxEngine, behind, keepers

pytestmark = [pytest.mark.needs_uv, pytest.mark.root]

SOMEBODY_ELSE = Principal(issuer="https://issuer.example", subject="somebody")
STUBBORN = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
while True:
    try:
        while True: pass
    except BaseException: pass
"""


@pytest.fixture(scope="module")
def engine(module_home: Path, kept_environments: None) -> Iterator[SandboxEngine]:
    with SandboxEngine(module_home, **SETTINGS) as made:
        yield made


@pytest.fixture
def fresh_home(state_home: Path, module_home: Path, engine: SandboxEngine) -> Path:
    """A state folder of the test's own, with the environments of the others."""
    (state_home / "environments").symlink_to(module_home / "environments")
    return state_home


async def end_of(engine: SandboxEngine, session_id: str) -> str:
    """Return why a session has ended, as its user is told."""
    with pytest.raises(SessionEndedError) as told:
        await engine.submit("1", session_id=session_id)
    return str(told.value.details["reason"])


def reason(execution: Execution) -> str:
    return (execution.outcome and execution.outcome.reason) or ""


async def test_variables_imports_functions_and_files_stay(engine: SandboxEngine) -> None:
    await engine.run("import math\ndef double(n): return 2 * n\nx = 5\nopen('kept', 'w').write('k')", session_id="stay")
    assert await engine.value("[double(x), math.pi > 3, open('kept').read(), _ih[-1][:6]]", "stay") == (
        "[10, True, 'k', '[doubl']"
    )
    assert await engine.value("'x' in globals()", "another") == "False"


@pytest.mark.case("B059")
@pytest.mark.case("B061")
async def test_an_exit_is_told_with_its_code_and_the_session_lives(engine: SandboxEngine) -> None:
    await engine.run("x = 5", session_id="exits")
    ended = await engine.run("import sys; sys.exit(3)", session_id="exits")
    assert ended.outcome is not None
    assert (ended.outcome.kind, ended.outcome.exit_code) == ("exited", 3)
    handled = await engine.run("try:\n    1/0\nexcept ZeroDivisionError:\n    sys.exit('bye')", session_id="exits")
    assert handled.outcome is not None
    assert handled.outcome.exit_code == 1
    assert await engine.value("x", "exits") == "5"


@pytest.mark.case("B060")
async def test_a_hard_exit_ends_the_session_and_the_next_call_says_so(engine: SandboxEngine) -> None:
    await engine.run("x = 5", session_id="hard")
    ended = await engine.run("import os; os._exit(9)", session_id="hard")
    assert ended.outcome is not None
    assert ended.outcome.exit_code == 9
    assert "the variables are lost, the files are kept. restart_session" in reason(ended)
    assert await end_of(engine, "hard") == "exited with code 9"
    await engine.sessions.restart(engine.principal, "hard")
    assert await engine.value("'x' in globals()", "hard") == "False"


async def test_a_crash_and_a_want_of_memory_are_told_by_name(engine: SandboxEngine) -> None:
    await engine.run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", session_id="crashes")
    assert await end_of(engine, "crashes") == "crashed: SIGSEGV"
    code = "import mmap\nkept = mmap.mmap(-1, 2**30)\nwhile True: kept.write(bytes(2**20))"
    ended = await engine.run(code, session_id="hungry")
    assert ended.outcome is not None
    assert ended.outcome.kind == "out_of_memory"
    assert (await end_of(engine, "hungry")).startswith("out of memory")


async def test_what_ends_between_two_turns_is_told_by_the_next(engine: SandboxEngine) -> None:
    code = "import os, signal, threading\nthreading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()"
    await engine.run(code, session_id="later")

    eventually(lambda: engine.session_state("later") == "ended")
    assert await end_of(engine, "later") == "crashed: SIGKILL"


async def test_a_time_out_that_can_be_interrupted_keeps_the_session_and_says_so(engine: SandboxEngine) -> None:
    await engine.run("x = 5", session_id="slow")
    ended = await engine.run("while True: pass", session_id="slow", timeout_seconds=1)
    assert (ended.state, ended.outcome and ended.outcome.stopped_by) == ("timed_out", "SIGINT")
    assert reason(ended) == "It ran longer than 1 s. It was interrupted, and its session keeps its variables."
    assert await engine.value("x", "slow") == "5"


async def test_one_that_cannot_ends_the_session_and_says_so(engine: SandboxEngine) -> None:
    ended = await engine.run(STUBBORN, session_id="stubborn", timeout_seconds=1)
    assert (ended.state, ended.outcome and ended.outcome.stopped_by) == ("timed_out", "SIGKILL")
    assert "With it its session has ended" in reason(ended)
    assert await end_of(engine, "stubborn") == "an execution in it had to be killed"


@pytest.mark.case("B078")
async def test_an_interrupt_ends_the_child_that_the_code_waits_for_and_keeps_the_state(engine: SandboxEngine) -> None:
    await engine.run("x = 1", session_id="child")
    ended = await engine.run(
        "import subprocess; subprocess.run(['sleep', '1000'])", session_id="child", timeout_seconds=1
    )
    turn = await engine.executions.turn_of(ended)
    assert turn is not None
    assert turn.failure is not None
    assert (ended.state, turn.failure.type) == ("timed_out", "KeyboardInterrupt")
    running = "import glob; [n for n in glob.glob('/proc/[0-9]*/comm') if open(n).read() == 'sleep\\n']"
    assert await engine.value(running, "child") == "[]"
    assert await engine.value("x", "child") == "1"


async def test_turns_run_in_the_order_in_which_they_were_asked_for_and_never_mix(engine: SandboxEngine) -> None:
    await engine.run("seen = []", session_id="order")
    submitted = [await engine.submit(f"seen.append({n}); print('out', {n})", session_id="order") for n in range(8)]
    for number, execution in enumerate(submitted):
        assert await engine.stdout(await engine.wait(execution)) == f"out {number}\n"
    assert await engine.value("seen", "order") == "[0, 1, 2, 3, 4, 5, 6, 7]"


async def test_who_waits_for_a_session_takes_no_place_among_those_that_run(module_home: Path) -> None:
    with SandboxEngine(module_home, **SETTINGS, concurrent=2) as engine:
        holder, _pid = await engine.begin_one("held")
        waiting = [await engine.submit("1", session_id="held") for _ in range(3)]
        assert await engine.value("6 * 7") == "42"
        await engine.stop(holder)
        assert [(await engine.wait(one)).state for one in waiting] == ["completed"] * 3


@pytest.mark.exhaustive
async def test_only_so_many_wait_for_one_session(fresh_home: Path) -> None:
    with SandboxEngine(fresh_home, **SETTINGS, session_waiting=2) as engine:
        holder, _pid = await engine.begin_one("full")
        waiting = [await engine.submit("1", session_id="full") for _ in range(2)]
        with pytest.raises(SessionBusyError, match="2 executions wait for their turn in session 'full'; at most 2 may"):
            await engine.submit("1", session_id="full")
        await engine.stop(holder)
        for one in waiting:
            await engine.wait(one)


async def test_an_end_of_a_turn_that_waits_leaves_the_session_alone(engine: SandboxEngine) -> None:
    holder, _pid = await engine.begin_one("waits")
    waiting = await engine.submit("1", session_id="waits")
    assert (await engine.stop(waiting, "kill", "not needed")).state == "cancelled"
    assert (await engine.get(holder)).state == "running"
    assert (await engine.stop(holder)).state == "cancelled"
    assert await engine.value("'alive'", "waits") == "'alive'"


async def test_what_a_thread_or_child_says_later_is_marked_and_mixes_with_nothing(engine: SandboxEngine) -> None:
    code = """
import os, subprocess, threading
go = threading.Event()
def speak():
    go.wait()
    print('from a thread')
    os.write(1, b'from below\\n')
    said.set()
said = threading.Event()
threading.Thread(target=speak, daemon=True).start()
"""
    await engine.run(code, session_id="late")
    during = await engine.run("go.set(); said.wait(); print('mine')", session_id="late")
    turn = await engine.executions.turn_of(during)
    assert turn is not None
    assert "".join(one.text for one in turn.late) == "from a thread\n"
    assert sorted((await engine.stdout(during)).splitlines()) == ["from below", "mine"]


async def test_variables_of_the_first_call_stay_and_those_of_later_ones_do_not(engine: SandboxEngine) -> None:
    await engine.run("import os", session_id="env", env_vars={"FIRST": "1"})
    code = "[os.environ.get(name) for name in ('FIRST', 'SECOND')]"
    second = await engine.executions.turn_of(await engine.run(code, session_id="env", env_vars={"SECOND": "2"}))
    assert second is not None
    assert second.value == "['1', '2']"
    assert await engine.value(code, "env") == "['1', None]"


async def test_a_session_tells_about_itself(engine: SandboxEngine) -> None:
    await engine.run("x = 5\nname = 'abc'", session_id="told")
    status = await engine.sessions.info(engine.principal, "told")
    assert status.guest is not None
    assert {one["name"]: one["type"] for one in status.guest["variables"]} == {"x": "int", "name": "str"}
    assert status.guest["turns"] == 1
    assert status.live["memory"] > 0
    holder, _pid = await engine.begin_one("told")
    busy = await engine.sessions.info(engine.principal, "told")
    assert (busy.guest, busy.live["busy"], busy.waiting) == (None, True, 1)
    await engine.stop(holder)
    assert await engine.value("x", "told") == "5"


async def test_closing_one_at_work_ends_its_turn_and_leaves_no_process_and_no_file(engine: SandboxEngine) -> None:
    holder, pid = await engine.begin_one("closed")
    session = await engine.sessions.close(engine.principal, "closed")
    ended = await engine.wait(holder)
    assert (session.id, ended.state) == ("closed", "cancelled")
    assert "it was closed" in reason(ended)
    eventually(lambda: not alive(pid))
    with pytest.raises(NotFoundError):
        await engine.sessions.info(engine.principal, "closed")


async def test_nobody_sees_the_sessions_of_somebody_else(engine: SandboxEngine) -> None:
    await engine.run("x = 5", session_id="mine")
    assert await engine.sessions.all_of(SOMEBODY_ELSE) == []
    for act in (engine.sessions.info, engine.sessions.restart, engine.sessions.close, engine.sessions.running_in):
        told: list[str] = []
        for session_id in ("mine", "nobody"):
            with pytest.raises(NotFoundError) as refused:
                await act(SOMEBODY_ELSE, session_id)
            told.append(refused.value.sentence().replace(session_id, "…"))
        assert told[0] == told[1]
    assert await engine.value("x", "mine") == "5"


@pytest.mark.parametrize("session_id", ["", ".hidden", "a/b", "../up", "a b", "x" * 65, "ü", "a\0b", "a\n"])
async def test_an_id_that_can_be_none_is_refused(engine: SandboxEngine, session_id: str) -> None:
    with pytest.raises(InvalidArgumentError, match="session_id is"):
        await engine.submit("1", session_id=session_id)


async def test_ending_a_user_ends_all_they_have_and_their_files_stay_and_nobody_elses_session_ends(
    engine: SandboxEngine,
) -> None:
    await engine.run("x = 5", session_id="not-theirs")
    code = ExecutionRequest(
        script_content="open('kept', 'w').write('k')\nwhile True: pass",
        harness=Harness(guest=True),
        sandboxed=True,
        session_id="theirs",
    )
    running, waiting = [await engine.executions.submit(SOMEBODY_ELSE, code) for _ in range(2)]

    async def runs() -> bool:
        return (await engine.executions.get(SOMEBODY_ELSE, running.id)).state == "running"

    await soon(runs)

    ended = await engine.services.users.end(SOMEBODY_ELSE)

    assert (ended.executions, ended.sessions) == ({running.id, waiting.id}, {"theirs"})
    assert ended.complete
    for one in (running, waiting):
        found = await engine.executions.get(SOMEBODY_ELSE, one.id)
        assert found.state == "cancelled"
        assert "ended: its user was ended by the operator" in reason(found)
    with pytest.raises(SessionEndedError, match="its user was ended by the operator"):
        await engine.executions.submit(SOMEBODY_ELSE, code)
    read = await engine.services.files.read_whole(SOMEBODY_ELSE, "theirs", "kept")
    assert read.data == b"k"
    assert await engine.value("x", "not-theirs") == "5"


async def test_a_made_up_id_is_new_each_time(engine: SandboxEngine) -> None:
    first, second = [await engine.run("1", session_id="new") for _ in range(2)]
    assert first.session is not None
    assert first.session != second.session
    assert len(first.session) >= 32
    for one in (first, second):
        await engine.sessions.close(engine.principal, one.session or "")


async def test_a_session_keeps_the_interpreter_it_was_made_with(engine: SandboxEngine) -> None:
    await engine.run("1", session_id="fixed")
    with pytest.raises(InvalidArgumentError, match=r"python_version is '3\.12', and session 'fixed' was made with"):
        await engine.submit("1", session_id="fixed", python_version="3.12")
    with pytest.raises(InvalidArgumentError, match="python_version is '/usr/bin/python3'"):
        await engine.submit("1", session_id="path", python_version="/usr/bin/python3")


async def test_who_first_runs_something_where_files_were_sent_chooses_the_interpreter(engine: SandboxEngine) -> None:
    await engine.sessions.make(engine.principal, "sent")
    await engine.services.files.write(engine.principal, "sent", "sent.txt", "outside", encoding="text", manner="create")
    read = await engine.run("open('sent.txt').read()", session_id="sent", python_version=">=3.12")
    turn = await engine.executions.turn_of(read)
    assert turn is not None
    assert turn.value == "'outside'"
    assert (await engine.sessions.info(engine.principal, "sent")).session.python == ">=3.12"
    with pytest.raises(InvalidArgumentError, match=r"python_version is '3\.13', and session 'sent' was made with '>="):
        await engine.submit("1", session_id="sent", python_version="3.13")


async def test_the_one_that_was_not_used_for_the_longest_time_makes_room(fresh_home: Path) -> None:
    with SandboxEngine(fresh_home, **SETTINGS, sessions=2) as engine:
        for name in ("a", "b", "a"):
            await engine.run("x = 1", session_id=name)
        await engine.run("x = 1", session_id="c")
        assert (await end_of(engine, "b")).startswith("it made room for another one, idle for")
        holders = [await engine.begin_one(name) for name in ("a", "c")]
        refused = await engine.run("1", session_id="d")
        assert "2 sessions are at work; at most 2 may live" in reason(refused)
        for execution, _pid in holders:
            await engine.stop(execution)


async def test_one_that_is_idle_for_too_long_ends_and_says_so(fresh_home: Path) -> None:
    with SandboxEngine(fresh_home, **SETTINGS, session_idle_minutes=0.01) as engine:
        await engine.run("open('kept', 'w')", session_id="idle")
        eventually(lambda: engine.session_state("idle") == "ended")
        assert await end_of(engine, "idle") == "idle for 1 s"


async def test_sessions_outlive_the_server_and_the_next_one_finds_them(
    module_home: Path, engine: SandboxEngine
) -> None:
    await engine.run("x = 5", session_id="outlives")
    with SandboxEngine(module_home, **SETTINGS) as other:
        assert await other.value("x", "outlives") == "5"
    assert len(keepers(module_home)) >= 1


async def test_a_killed_keeper_is_told_by_the_next_turn_and_leaves_no_process(fresh_home: Path) -> None:
    with SandboxEngine(fresh_home, **SETTINGS) as engine:
        await engine.run("x = 5", session_id="lost")
        running, pid = await engine.begin_one("running")
        (keeper,) = keepers(fresh_home)
        before = behind(fresh_home)
        os.kill(keeper, signal.SIGKILL)
        assert (await engine.wait(running)).state == "lost"
        for name in ("lost", "running"):
            assert await end_of(engine, name) == "lost: the keeper of its sandbox was killed"
        await engine.sessions.restart(engine.principal, "lost")
        assert await engine.value("'x' in globals()", "lost") == "False"
        eventually(lambda: not any(alive(one) for one in (pid, *before)))
