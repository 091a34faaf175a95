"""What a keeper runs before the program, told apart from it; handed straight to a keeper, so nothing is installed."""

import json
import os
import socket
import uuid
from pathlib import Path
from typing import Any

import pytest

from pyexec.sandbox.claims import claim
from pyexec.sandbox.keepers import connect
from pyexec.sandbox.observations import Observation, observe
from pyexec.sandbox.ports import Launch, Line, Preparing
from pyexec.walls.host.wall import HostWall
from tests.helpers.processes import alive, eventually
from tests.helpers.waiting import ENOUGH_SECONDS
from tests.integration.engine import Engine, gone


class Prepared:
    """One execution that was handed straight to a keeper."""

    def __init__(
        self, engine: Engine, prepare: str = "", seconds: float = 30.0, order: tuple[str, ...] = (), **how: Any
    ) -> None:
        name = uuid.uuid4().hex
        self.folder = engine.home / "executions" / name
        self.folder.mkdir()
        queue = engine.home / "queues" / "q"
        held = claim(self.folder, queue, name)
        values: dict[str, Any] = {
            "argv": ("/bin/sh", "-c", "echo program"),
            "prepare_timeout": seconds,
            "cwd": str(engine.directory),
            "env": {"PATH": f"{os.defpath}:{engine.home}"},
            "head_bytes": 10_000,
            "tail_bytes": 10_000,
        }
        if how.pop("cwd_is_folder", False):
            values["cwd"] = str(self.folder)
        env = {**values["env"], **how.get("env", {}), **how.pop("prepare_env", {})}
        stdin = how.pop("prepare_stdin", "")
        orders = [order] if order else [("/bin/sh", "-c", one) for one in ([prepare] if prepare else [])]
        values["prepare"] = tuple(Preparing(argv=one, env=env, stdin=stdin) for one in orders)
        self._launch = Launch(
            execution_id=name,
            owner="test",
            folder=self.folder,
            lines=(Line(folder=queue, entry=held.entry, slots=4),),
            **(values | how),
        )
        HostWall(engine.services.launcher).launch(self._launch, held.lock_fd).close()
        held.release()

    def ended(self) -> dict[str, Any]:
        outcome = self.folder / "outcome.json"
        eventually(outcome.exists)
        return json.loads(outcome.read_bytes())

    def look(self) -> Observation:
        return observe(self.folder)

    def text(self, name: str) -> str:
        path = self.folder / name
        return path.read_text("utf-8") if path.exists() else ""


def test_what_prepares_says_nothing_on_the_programs_streams(engine: Engine) -> None:
    prepared = Prepared(engine, "echo one; echo two >&2; echo three")

    outcome = prepared.ended()

    assert (outcome["kind"], outcome["exit_code"]) == ("exited", 0)
    assert prepared.text("stdout") == "program\n"
    assert prepared.text("stderr") == ""
    assert sorted(prepared.text("prepare").split()) == ["one", "three", "two"]


def test_what_prepares_has_variables_of_its_own(engine: Engine) -> None:
    show = ("/bin/sh", "-c", 'echo "$ONE $TWO"')
    env = {"PATH": f"{os.defpath}:{engine.home}", "ONE": "1", "TWO": "2"}
    prepared = Prepared(engine, argv=show, prepare='echo "$ONE $TWO"', env=env, prepare_env={"TWO": "two"})

    assert prepared.ended()["kind"] == "exited"
    assert (prepared.text("prepare"), prepared.text("stdout")) == ("1 two\n", "1 2\n")


def test_an_environment_that_cannot_be_made_is_no_failure_of_the_program(engine: Engine) -> None:
    prepared = Prepared(engine, "echo no such package >&2; exit 2")

    outcome = prepared.ended()

    assert (outcome["kind"], outcome["reason"]) == ("environment_failed", "no such package")
    assert "exit_code" not in outcome
    assert outcome["started_at"] is None
    assert prepared.text("stdout") == ""


def test_preparing_has_a_time_of_its_own(engine: Engine) -> None:
    prepared = Prepared(engine, "echo $$ > pid; sleep 60", seconds=1.0)

    outcome = prepared.ended()

    assert outcome["kind"] == "environment_failed"
    assert outcome["reason"] == "Installing what it needs took longer than 1 s."
    gone([int((engine.directory / "pid").read_text())])


def test_preparing_does_not_count_as_time_that_the_program_ran(engine: Engine) -> None:
    def ends_well(seconds: float) -> bool:
        return Prepared(engine, f"sleep {seconds + 0.2}", timeout=seconds, seconds=100.0).ended()["kind"] == "exited"

    assert any(ends_well(seconds) for seconds in ENOUGH_SECONDS)


def test_the_program_runs_on_the_interpreter_that_preparing_names(engine: Engine) -> None:
    tools = engine.directory / "tools"
    tools.mkdir()
    (tools / "python").write_text('#!/bin/sh\necho "$0 $1"; echo "$PATH" | cut -d: -f1\n')
    (tools / "python").chmod(0o755)
    answer = {"python": str(tools / "python"), "packages": ["a==1"], "digest": "d", "unknown": "x"}
    prepared = Prepared(
        engine,
        'cat > "$FOLDER/environment.json"',
        argv=("/nowhere/python", "script.py"),
        prepare_env={"FOLDER": "."},
        prepare_stdin=json.dumps(answer),
        cwd_is_folder=True,
    )

    assert prepared.ended()["kind"] == "exited"
    assert prepared.text("stdout") == f"{tools / 'python'} script.py\n{tools}\n"
    events = [json.loads(line) for line in prepared.text("events").splitlines()]
    (told,) = [event for event in events if event["k"] == "environment"]
    assert (told["packages"], told["digest"], "unknown" in told) == (["a==1"], "d", False)


@pytest.mark.parametrize("answer", ["", "no json", "[]", "null"])
def test_an_answer_that_is_none_starts_nothing(engine: Engine, answer: str) -> None:
    prepared = Prepared(engine, "cat > environment.json", prepare_stdin=answer, cwd_is_folder=True)

    outcome = prepared.ended()
    assert (outcome["kind"], outcome["started_at"]) == ("environment_failed", None)
    assert prepared.text("stdout") == ""


def test_what_prepares_and_is_killed_is_said_by_the_signal(engine: Engine) -> None:
    outcome = Prepared(engine, "echo installing 3 of 9; kill -9 $$").ended()

    assert outcome["kind"] == "environment_failed"
    assert outcome["reason"] == "The program that makes the environment was ended by SIGKILL."


async def test_it_can_be_cancelled_while_it_is_prepared(engine: Engine) -> None:
    prepared = Prepared(engine, "echo $$ > pid; exec sleep 60")
    pid = engine.directory / "pid"
    eventually(lambda: pid.exists() and pid.read_text().strip())
    assert prepared.look().phase == "pending"

    async with connect(prepared.folder) as keeper:
        assert keeper is not None
        keeper.stop("cancel", "Too slow.")
        while await keeper.next() is not None:
            continue

    outcome = prepared.ended()
    assert (outcome["kind"], outcome["reason"], outcome["started_at"]) == ("cancelled", "Too slow.", None)
    assert not alive(int(pid.read_text()))


def test_a_program_that_is_not_there_is_said(engine: Engine) -> None:
    outcome = Prepared(engine, argv=("/nowhere/python", "x.py")).ended()

    assert (outcome["kind"], outcome["reason"]) == (
        "start_failed",
        "could not run /nowhere/python: No such file or directory",
    )


def test_a_tool_that_is_not_there_is_said(engine: Engine) -> None:
    outcome = Prepared(engine, order=("/nowhere/uv", "sync")).ended()

    assert (outcome["kind"], outcome["reason"]) == (
        "start_failed",
        "could not run /nowhere/uv: No such file or directory",
    )


def test_a_program_that_may_not_be_run_is_said(engine: Engine) -> None:
    script = engine.directory / "plain.txt"
    script.touch()

    assert "Permission denied" in Prepared(engine, argv=(str(script),)).ended()["reason"]


def test_orders_as_large_as_they_may_get_reach_the_keeper(engine: Engine) -> None:
    prepared = Prepared(engine, argv=("/usr/bin/wc", "-c"), stdin="\x01" * 16 * 1024 * 1024)

    assert prepared.ended()["kind"] == "exited"
    assert int(prepared.text("stdout")) == 16 * 1024 * 1024


def test_the_keepers_own_environment_holds_nothing_of_the_programs(engine: Engine) -> None:
    prepared = Prepared(
        engine, argv=("/bin/sleep", "60"), env={"PATH": f"{os.defpath}:{engine.home}", "SECRET": "s3cret"}
    )
    eventually(lambda: prepared.look().phase == "running")
    started = prepared.look().started
    assert started is not None
    keeper = int(Path(f"/proc/{started.pid}/stat").read_text().rpartition(")")[2].split()[1])

    assert b"s3cret" not in Path(f"/proc/{keeper}/environ").read_bytes()
    assert b"s3cret" in Path(f"/proc/{started.pid}/environ").read_bytes()
    os.kill(started.pid, 9)
    assert prepared.ended()["signal"] == "SIGKILL"


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff\xff\xff", b"\0\0\0\2[]", b"\0\0\0\5hello", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x02{}", b""],
    ids=["too large", "no object", "no json", "http", "empty object", "nothing"],
)
def test_a_client_that_talks_nonsense_is_dropped_and_nothing_else_happens(engine: Engine, data: bytes) -> None:
    prepared = Prepared(engine, argv=("/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.01; done; echo done"))
    folder = os.open(prepared.folder, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"/proc/self/fd/{folder}/socket")
        client.settimeout(100)
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            continue
    os.close(folder)
    (engine.directory / "go").touch()

    assert prepared.ended()["kind"] == "exited"
    assert prepared.text("stdout") == "done\n"


def test_a_client_that_never_reads_holds_nothing_up(engine: Engine) -> None:
    prepared = Prepared(
        engine, argv=("/bin/sh", "-c", "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); done; echo done")
    )
    folder = os.open(prepared.folder, os.O_RDONLY)
    deaf = [socket.socket(socket.AF_UNIX) for _ in range(70)]
    for client in deaf:
        client.setblocking(False)
        try:
            client.connect(f"/proc/self/fd/{folder}/socket")
        except OSError:
            break
    outcome = prepared.ended()
    for client in deaf:
        client.close()
    os.close(folder)

    assert outcome["kind"] == "exited"
