"""A guest's life: what it says at first, what it cannot forge, how it ends."""

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from pyexec.sandbox.guest import GUEST_MAIN
from pyexec_guest import protocol
from tests.guest.guests import Guest

pytestmark = pytest.mark.needs_uv

FIND = """
import os, socket
def channel():
    for name in os.listdir('/proc/self/fd'):
        try:
            if os.readlink(f'/proc/self/fd/{name}').startswith('socket:'): yield int(name)
        except OSError: pass
fd = max(channel())
"""
SEND = "import json, struct\ndef send(m): b = json.dumps(m).encode(); os.write(fd, struct.pack('>I', len(b)) + b)\n"


def test_it_says_its_versions_first(guest: Guest) -> None:
    assert guest.hello.python.startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert int(guest.hello.ipython.partition(".")[0]) >= 8


def test_the_channel_lies_high_and_is_not_inherited(guest: Guest) -> None:
    guest.run(FIND)
    assert int(guest.run("fd").value or 0) >= 100
    listed = guest.run("import subprocess; print(subprocess.run(['ls', '/proc/self/fd'], capture_output=True).stdout)")
    assert str(guest.run("fd").value) not in listed.stdout
    assert guest.run("__import__('os').environ.get('PYEXEC_CHANNEL')").value is None


def test_a_forked_copy_says_nothing_in_the_guests_name(guest: Guest) -> None:
    cell = guest.run("import os\nx = 'parent'\nif os.fork() == 0:\n    x = 'child'\nelse:\n    _ = os.wait()\nx")
    assert (cell.turn.status, cell.value) == ("ok", "'parent'")
    cell = guest.run(
        "import multiprocessing as mp\ndef g(n): print('in a worker', flush=True); return n + 1\n"
        "with mp.get_context('fork').Pool(2) as pool: print(pool.map(g, [1, 2]))"
    )
    assert cell.stdout.count("in a worker") == 2
    assert "[2, 3]" in cell.stdout
    assert guest.run("x").value == "'parent'"


def test_a_terminal_frame_of_another_turn_cannot_be_forged(new_guest: Callable[[], Guest]) -> None:
    guest = new_guest()
    guest.run(FIND + SEND)
    gone = guest.dies("send({'t': 'done', 'turn': 'a' * 32, 'n': 1, 'status': 'ok', 'value': 'forged'})\n1/0")
    assert "another turn" in gone.why
    assert gone.turn is not None
    assert (gone.turn.status, gone.turn.value) == (None, None)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("os.write(fd, b'\\xff\\xff\\xff\\xff')", "at most"),
        ("os.write(fd, b'\\x00\\x00\\x00\\x02[]')", "not a JSON object"),
        ("send({'t': 'hello', 'v': 1})", "another turn"),
        ("d = '[' * 100_000 + ']' * 100_000\nos.write(fd, struct.pack('>I', len(d)) + d.encode())", "JSON"),
    ],
    ids=["too large", "no object", "a second hello", "deep"],
)
def test_what_is_no_frame_of_ours_ends_the_conversation(new_guest: Callable[[], Guest], code: str, why: str) -> None:
    guest = new_guest()
    guest.run(FIND + SEND)
    gone = guest.dies(code + "\nimport time; time.sleep(300)")
    assert why in gone.why


@pytest.mark.case("B060")
def test_a_guest_that_ends_in_the_middle_is_said_to_be_gone(new_guest: Callable[[], Guest]) -> None:
    guest = new_guest()
    gone = guest.dies("print('before')\ndisplay('shown')\nimport os; os._exit(9)")
    assert guest.process.returncode == 9
    assert bytes(guest.printed[0]) == b"before\n"
    assert gone.turn is not None
    assert (gone.turn.status, len(gone.turn.displays)) == (None, 1)


def test_a_crash_leaves_a_trace_and_all_output(new_guest: Callable[[], Guest]) -> None:
    guest = new_guest()
    guest.dies("print('last words')\nimport ctypes; ctypes.string_at(0)")
    assert guest.process.returncode == -11
    assert bytes(guest.printed[0]) == b"last words\n"
    assert b"Segmentation fault" in guest.printed[1]


def test_it_ends_when_nobody_is_there_any_more(new_guest: Callable[[], Guest]) -> None:
    guest = new_guest()
    guest.channel._socket.close()
    assert guest.process.wait(10) == 0


def test_without_ipython_it_says_what_is_missing() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ended = subprocess.run(
            [sys.executable, "-I", "-S", GUEST_MAIN],
            env={"PYEXEC_CHANNEL": str(theirs.fileno())},
            pass_fds=[theirs.fileno()],
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr == "This Python has no IPython; add ipython to its packages.\n"


def test_nothing_of_our_own_packages_is_seen(guest: Guest) -> None:
    assert guest.run("import fastmcp").failure.type == "ModuleNotFoundError"
    assert guest.run("import sys; [path for path in sys.path if 'src' in path]").value == "[]"
    (guest.work / "neighbour.py").write_text("answer = 42")
    assert guest.run("import neighbour; neighbour.answer").value == "42"


def test_versions_must_agree() -> None:
    from pyexec.sandbox.channel import GuestChannel, GuestGoneError

    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(protocol.encode({"t": "hello", "v": protocol.VERSION + 1}))
        with pytest.raises(GuestGoneError, match="version"):
            anyio.run(GuestChannel(ours, lambda: (0, 0)).hello)
    ours.close()


_KEPT_READY = """
import os, sys
sys.path.append({own!r})
from pyexec_guest import channel, loop
channel.Channel.waits_for = lambda *_: True
loop.serve_prepared(int(os.environ.pop("PYEXEC_CHANNEL")), loop.prepare(), lambda: None)
"""


def test_what_one_that_is_kept_ready_does_ahead_leaves_no_trace(guest_python: Path, tmp_path: Path) -> None:
    main = tmp_path / "main.py"
    main.write_text(_KEPT_READY.format(own=str(Path(GUEST_MAIN).parents[1])), encoding="utf-8")
    guest = Guest(guest_python, main=main)
    try:
        assert (guest.info()["turns"], guest.info()["variables"]) == (0, [])
        code = "cell = len(In), _, __, _i, get_ipython().execution_count\ncell, [n for n in globals() if n[:2] == '_i']"
        first = guest.run(code)
        assert first.value == "((2, '', '', '', 2), ['_ih', '_i', '_ii', '_iii', '_i1'])"
        assert (first.stdout, first.stderr, guest.late, guest.info()["turns"]) == ("", "", [], 1)
        assert guest.interrupted("print('ready', flush=True)\nwhile True: pass").turn.status == "interrupted"
    finally:
        guest.close()
