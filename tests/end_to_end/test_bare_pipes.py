"""What goes over the pipes, byte by byte: protocol and nothing else, whatever comes in."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.forks import PYEXEC
from tests.helpers.pipes import PipeServer, pipe_server
from tests.helpers.processes import eventually

INLINE: dict[str, Any] = {"directory": "/tmp", "use_uv": False}
PARENT_AND_CHILD = """
import subprocess, sys
print(len(sys.stdin.read()))
print(subprocess.run([sys.executable, "-c", "input()"], stderr=subprocess.DEVNULL).returncode)
"""


# A shell starts `server &` with SIGINT ignored, and what it starts inherits that.
IN_THE_BACKGROUND = ("sh", "-c", "trap '' INT; exec \"$0\" serve", PYEXEC)
ENDLESS = """
import signal, time
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
try:
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture(scope="module")
def pipes(module_home: Path) -> Iterator[PipeServer]:
    with pipe_server(module_home, command=IN_THE_BACKGROUND) as server:
        server.initialize()
        yield server


def run(pipes: PipeServer, source: str, **more: Any) -> dict[str, Any]:
    message = pipes.answer(pipes.call("run_script_in_dir", **INLINE, script_content=source, **more))
    return message["result"]["structuredContent"]


@pytest.mark.case("B002")
def test_a_program_never_reads_what_is_meant_for_the_server(pipes: PipeServer) -> None:
    call = pipes.call("run_script_in_dir", **INLINE, script_content=PARENT_AND_CHILD)
    pings = [pipes.ask("ping") for _ in range(20)]
    assert pipes.answer(pings[0])["result"] == {}
    seen = {pings[0]}
    while True:
        message = pipes._answers.get(timeout=40)
        seen.add(message["id"])
        if message["id"] == call:
            break
    assert message["result"]["structuredContent"]["stdout"] == "0\n1\n"
    assert pipes.answer(pipes.ask("ping"))["result"] == {}
    assert seen >= set(pings), "not one was eaten"


@pytest.mark.case("B056")
@pytest.mark.parametrize(
    "garbage",
    [
        b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"x":"\xff"}}',
        b"\x00\x01\x02",
        b"not json at all",
        b"",
        b'{"half": ',
        b"[]",
        b'{"jsonrpc":"2.0","id":"x","method":"no/such/method"}',
        b"x" * 300_000,
    ],
    ids=["bad utf-8", "control", "words", "empty", "half", "list", "unknown method", "long"],
)
def test_garbage_is_survived(pipes: PipeServer, garbage: bytes) -> None:
    pipes.send(garbage)
    assert pipes.request("ping") == {}
    assert pipes.process.poll() is None


@pytest.mark.case("B057")
def test_line_separators_of_unicode_do_not_break_a_message(pipes: PipeServer) -> None:
    before = len(pipes.lines)
    assert run(pipes, "print('a\\u2028b\\u0085c\\u2029d')")["stdout"] == "a\u2028b\u0085c\u2029d\n"
    (line,) = pipes.lines[before:]
    for separator in ("\u2028", "\u2029", "\u0085"):
        assert separator.encode() not in line, "escaped, for readers that would split there"
    assert len(line.decode().splitlines()) == 1


@pytest.mark.case("B055")
def test_progress_is_sent_only_to_those_who_asked(pipes: PipeServer) -> None:
    pipes.notifications.clear()
    slow = "import time; time.sleep(0.3)"
    run(pipes, "pass")
    run(pipes, slow)
    pipes.answer(pipes.call("list_running_jobs"))
    assert pipes.progress() == []
    result = run(pipes, slow, progress_token="asked")
    assert pipes.progress()[0] == f"job {result['job_id']}"
    assert {note["params"]["progressToken"] for note in pipes.notifications} == {"asked"}
    pipes.notifications.clear()
    pipes.answer(pipes.call("list_running_jobs", progress_token="instant"))
    assert pipes.progress() == []


@pytest.mark.case("B180")
def test_a_number_that_json_does_not_know_is_refused(pipes: PipeServer) -> None:
    assert run(pipes, "print()", timeout_seconds=float("nan"))["error_code"] == "invalid_argument"


@pytest.mark.case("B008")
def test_an_interrupt_reaches_the_program_though_the_server_ignores_it(pipes: PipeServer) -> None:
    job_id = run(pipes, ENDLESS, async_mode=True)["job_id"]

    def output() -> dict[str, Any]:
        return pipes.answer(pipes.call("get_job_output", job_id=job_id))["result"]["structuredContent"]

    eventually(lambda: output()["stdout"] == "True\n")
    ended = pipes.answer(pipes.call("py_cancel_job", job_id=job_id))["result"]["structuredContent"]
    assert (ended["status"], ended["exit_code"]) == ("cancelled", 0)
    assert output()["stdout"] == "True\ninterrupted\n"


def test_every_line_on_stdout_is_a_message(pipes: PipeServer) -> None:
    """Comes last: looks back at all that the server has said in this file."""
    run(pipes, "import os, sys; os.write(1, b'out\\n' * 1000); os.write(2, b'err\\n' * 1000)")
    run(pipes, "1/0")
    run(pipes, "print()", nonsense=True)
    run(pipes, "print()", timeout_seconds=-1)
    messages = [json.loads(line) for line in pipes.lines]
    assert len(messages) > 30
    assert {message["jsonrpc"] for message in messages} == {"2.0"}
    assert all(line.endswith(b"}\n") for line in pipes.lines)
