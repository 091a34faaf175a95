"""Fork servers: what they are told, what they refuse, their end, and what they leave."""

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path

import pytest

from pyexec.domain.errors import SandboxesFullError, WallUnavailableError
from pyexec.domain.limits import MEGABYTE, SandboxLimits
from pyexec.sandbox.forks import Entrances, ForkServer, NotMadeError, Sandbox
from pyexec.walls.bubblewrap.boxes import Box, order_for
from pyexec.walls.bubblewrap.sandboxes import Sandboxes
from pyexec_guest.orders import ANSWER_BYTES, Answer, Order, OrderError, pack_answer, pack_order, unpack_answer
from tests.helpers.processes import alive, eventually
from tests.walls.bubblewrap import BUDGET, AttackedBox, inside, wall_around
from tests.walls.interface import run

pytestmark = pytest.mark.root
SMALL = SandboxLimits(memory=128 * MEGABYTE, workspace=8 * MEGABYTE, temporary=8 * MEGABYTE)


@pytest.fixture
def bare() -> Iterator[Sandboxes]:
    """A wall whose fork server has imported nothing, for tests that break it."""
    with wall_around(inside(None), limits=SMALL) as made:
        yield made


def server_of(wall: Sandboxes) -> ForkServer:
    return wall._current()


def processes_of_server(wall: Sandboxes) -> list[int]:
    assert wall._server is not None
    assert wall._server[1] is not None
    return wall._server[1].members()


def said(wall: Sandboxes, code: str = "print(1)") -> str:
    box = AttackedBox(wall.sandbox())
    try:
        return run(box, code).out
    finally:
        box.close()


def kill_fork_server(wall: Sandboxes) -> None:
    """Kill the fork server itself, and not the first process behind the outer wall."""
    first, server = sorted(processes_of_server(wall), key=lambda pid: int(_status(pid, "NSpid")[-1]))
    assert [_status(pid, "NSpid")[-1] for pid in (first, server)] == ["1", "4"]
    os.kill(server, signal.SIGKILL)
    eventually(lambda: not alive(server))


def _status(pid: int, field: str) -> list[str]:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(line.split()[1:] for line in lines if line.startswith(f"{field}:"))


def test_a_fork_server_that_is_killed_is_replaced_and_its_sandboxes_live_on(bare: Sandboxes) -> None:
    box = AttackedBox(bare.sandbox())
    try:
        assert run(box, "kept = 42").error is None
        kill_fork_server(bare)
        assert said(bare) == "1\n"
        assert run(box, "import subprocess; print(kept, subprocess.run(['true']).returncode)").out == "42 0\n"
        assert box.kill()
    finally:
        box.close()


def test_another_process_can_own_them_and_they_outlive_the_first_owner() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        owner = subprocess.Popen(
            [sys.executable, "-m", "tests.walls.first_owner", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[2],
        )
        theirs.close()
        _, fds, _, _ = socket.recv_fds(ours, 1, 7)
    owner.kill()
    owner.wait()
    server = ForkServer(socket.socket(fileno=fds[0]), fds[1])
    sandboxes = [Sandbox(socket.socket(fileno=fds[2]), fds[3], fds[4], (fds[5], fds[6]))]
    try:
        sandboxes.append(server.fork(order_for(SMALL, 2), Entrances(), 10))
        sandboxes[1].wait_ready(10)
        boxes = [AttackedBox(Box(sandbox, None, SMALL)) for sandbox in sandboxes]
        assert [run(box, "print(1)").out for box in boxes] == ["1\n"] * 2
        assert [box.kill() for box in boxes] == [True] * 2
    finally:
        for sandbox in sandboxes:
            sandbox.close()
        assert server.destroy(10)
        server.close()


def test_the_next_generation_takes_over_and_the_last_one_goes_with_its_sandboxes(bare: Sandboxes) -> None:
    box = AttackedBox(bare.sandbox())
    try:
        first = server_of(bare)
        bare.renew()
        assert server_of(bare) is not first
        assert said(bare) == "1\n"
        assert run(box, "print(2)").out == "2\n"
    finally:
        box.close()
    eventually(lambda: not first.is_inhabited())


def test_orders_that_are_none_are_refused_and_the_next_one_is_served(bare: Sandboxes) -> None:
    control = server_of(bare).control
    order = pack_order(order_for(SMALL, 1))
    with open("/dev/null", "rb") as file:
        fds = [file.fileno()] * 4
        for data, descriptors in [
            (b"x", fds),
            (order[:-1], fds),
            (order + b"x", fds),
            (order, []),
            (order, fds[:3]),
            (order, fds * 20),
            (pack_order(replace(order_for(SMALL, 1), folders=1)), fds),
            (pack_order(replace(order_for(SMALL, 1), folders=41)), fds * 12),
        ]:
            socket.send_fds(control, [data], descriptors)
            assert unpack_answer(control.recv(ANSWER_BYTES + 1)).error == errno.EBADMSG
    assert said(bare) == "1\n"


@pytest.mark.parametrize(
    "name", [field.name for field in fields(Order) if field.name not in ("number", "user", "folders")]
)
def test_a_limit_that_would_be_none_is_refused(name: str) -> None:
    for value in (0, 1 << 50, 1 << 63):
        with pytest.raises(OrderError, match=f"{name} is {value}"):
            replace(order_for(SMALL, 1), **{name: value}).check()


def test_a_sandbox_whose_limits_cannot_be_had_is_not_made(bare: Sandboxes) -> None:
    server = server_of(bare)
    with pytest.raises(NotMadeError, match="work_size is 0"):
        server.fork(replace(order_for(SMALL, 1), work_size=0), Entrances(), 10)
    # A user that the fork server does not have.
    box = server.fork(order_for(SMALL, 1 << 20), Entrances(), 10)
    try:
        with pytest.raises(NotMadeError, match="mounts: Invalid argument"):
            box.wait_ready(10)
        assert box.wait_gone(10)
    finally:
        box.close()
    assert said(bare) == "1\n"


def test_a_sandbox_that_cannot_enter_its_control_groups_is_not_made(bare: Sandboxes) -> None:
    with open("/dev/full", "wb") as full:
        box = server_of(bare).fork(order_for(SMALL, 1), Entrances((full.fileno(),)), 10)
    try:
        with pytest.raises(NotMadeError, match="control groups: No space left on device"):
            box.wait_ready(10)
    finally:
        box.close()


def test_an_answer_to_another_order_ends_the_conversation() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server = ForkServer(ours, os.open("/dev/null", os.O_RDONLY))
    try:
        theirs.send(b"\x07" + bytes(11))
        with pytest.raises(Exception, match="answers what was not asked"):
            server.fork(order_for(SMALL, 1), Entrances(), 1)
        assert not server.is_alive()
    finally:
        theirs.close()
        server.close()


def test_what_starts_threads_cannot_be_imported_ahead() -> None:
    what = inside(None, preloaded=("json", "starts_a_thread", "csv"))
    with (
        wall_around(what) as wall,
        pytest.raises(WallUnavailableError, match="starts_a_thread starts threads when it is imported"),
    ):
        wall.warm()


def test_a_module_that_is_not_there_is_named() -> None:
    with wall_around(inside(None, preloaded=("no_such_module",))) as wall:
        with pytest.raises(WallUnavailableError, match="No module named 'no_such_module'"):
            wall.warm()
        with pytest.raises(WallUnavailableError):
            wall.sandbox()


def test_more_memory_than_there_is_is_not_promised(bare: Sandboxes) -> None:
    with pytest.raises(SandboxesFullError, match="no room for one more sandbox") as refused:
        bare.sandbox(replace(SMALL, memory=BUDGET))
    assert refused.value.hint is not None
    assert said(bare) == "1\n"


def test_all_sandboxes_together_have_a_limit_too(bare: Sandboxes) -> None:
    box = bare.sandbox()
    (pid,) = [pid for pid in AttackedBox(box).processes() if _status(pid, "NSpid")[-1] == "1"]
    groups = dict(line.split(":")[1:] for line in Path(f"/proc/{pid}/cgroup").read_text("utf-8").splitlines())
    parent = Path(groups.get("memory", groups.get("", ""))).parent
    assert bare.waived == ()
    assert parent.name.startswith("pyexec-test-")
    limits = [
        int((folder / name).read_text())
        for folder in Path("/sys/fs/cgroup").glob(f"**/{parent.name}")
        for name in ("memory.limit_in_bytes", "memory.max")
        if (folder / name).exists()
    ]
    assert limits == [BUDGET]
    box.close()


def test_many_ask_at_once_and_each_gets_one_of_its_own(bare: Sandboxes) -> None:
    def ask(number: int) -> tuple[str, list[str]]:
        box = AttackedBox(bare.sandbox())
        try:
            users = {_status(pid, "Uid")[0] for pid in box.processes()}
            return run(box, f"print({number})").out, sorted(users)
        finally:
            box.close()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(8)))
    assert [out for out, _ in answers] == [f"{number}\n" for number in range(8)]
    assert len({user for _, users in answers for user in users}) == 8


def test_sandboxes_kept_ready_are_handed_out_once_each_and_made_anew() -> None:
    with wall_around(inside(None), limits=SMALL, ready=2) as wall:
        wall.warm()
        eventually(lambda: len(wall._ready) == 2)
        waiting = set(wall._ready)
        taken = [wall.sandbox() for _ in range(2)]
        try:
            assert set(taken) <= waiting
            assert len(set(taken)) == 2
            assert [run(AttackedBox(box), "print(1)").out for box in taken] == ["1\n"] * 2
            eventually(lambda: len(wall._ready) == 2)
            os.kill(AttackedBox(wall._ready[0]).processes()[0], signal.SIGKILL)
            eventually(lambda: not wall._ready[0].sandbox.is_alive())
            assert said(wall) == "1\n"
        finally:
            for box in taken:
                box.close()


def test_a_fork_server_that_is_killed_while_nobody_asks_is_replaced_ahead() -> None:
    with wall_around(inside(None), limits=SMALL, ready=1) as wall:
        wall.warm()
        eventually(lambda: wall._ready)
        before = wall._server
        kill_fork_server(wall)
        eventually(lambda: wall._server is not None and wall._server is not before)
        assert said(wall) == "1\n"


def test_nothing_is_left_of_a_wall_that_is_closed() -> None:
    with wall_around(inside(None), limits=SMALL, ready=1) as wall:
        wall.warm()
        box = wall.sandbox()
        members = [*processes_of_server(wall), *AttackedBox(box).processes()]
        assert len(members) >= 4
    # Its control groups: see `wall_around`.
    assert not any(alive(pid) for pid in members)
    assert box.closed


@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.exhaustive)])
def test_many_sandboxes_leave_nothing(bare: Sandboxes, count: int) -> None:
    def there() -> tuple[int, int, int, int]:
        members = processes_of_server(bare)
        descriptors = [len(os.listdir(f"/proc/{pid}/fd")) for pid in ("self", max(members))]
        return len(members), bare._groups.promised(), descriptors[0], descriptors[1]

    assert said(bare) == "1\n"
    before = there()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: said(bare), range(count))) == {"1\n"}
    assert there() == before


def test_an_answer_has_its_text_cut_to_what_a_packet_holds() -> None:
    assert len(pack_answer(Answer(1, 2, "x" * 100_000))) == ANSWER_BYTES
