"""Attacks on what a sandbox may use: memory, processes, processor, disk, time."""

import errno

import pytest

from tests.helpers.processes import alive, eventually
from tests.walls.interface import EndedError, Sandbox, Wall, answer, begin, run, works

MEGABYTE = 1024 * 1024
pytestmark = pytest.mark.root

SHARED_MEMORY_BOMB = """
import mmap
size = 1 << 30
bomb = mmap.mmap(-1, size)
for at in range(0, size, 4096):
    bomb[at] = 1
"""

FORK_BOMB = """
import json, os, time
count = 0
try:
    while count < 1000:
        if os.fork() == 0:
            time.sleep(3600)
        count += 1
except OSError as error:
    print(json.dumps([count, error.errno]))
"""

THREAD_BOMB = """
import json, threading
gate = threading.Event()
count = 0
try:
    while count < 1000:
        threading.Thread(target=gate.wait, daemon=True).start()
        count += 1
except RuntimeError as error:
    print(json.dumps([count, str(error)]))
gate.set()
"""

SURVIVORS = """
import os, signal, time
for _ in range(5):
    if os.fork() == 0:
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        os.setsid()
        if os.fork():
            os._exit(0)
        os.setpgid(0, 0)
        while True:
            time.sleep(3600)
print(len([name for name in os.listdir("/proc") if name.isdecimal()]))
"""

WRITABLE = """
import json, os
def can_write(folder):
    probe = os.path.join(folder, ".probe")
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_EXCL))
    except OSError:
        return False
    os.unlink(probe)
    return True
mounts = [line.split() for line in open("/proc/self/mountinfo").read().splitlines()]
folders = {fields[4] for fields in mounts if os.path.isdir(fields[4])}
folders |= {"/etc", "/opt", "/opt/pyexec", "/proc/self", "/usr/local", "/usr/share", "/var/tmp", "/run"}
not_read_only = {fields[4] for fields in mounts if "ro" not in fields[5].split(",")}
print(json.dumps([sorted(filter(can_write, folders)), sorted(not_read_only)]))
"""

FILL = """
import json, os
written, number, failed = 0, 0, None
block = bytes(1 << 20)
while failed is None and written < 1 << 30:
    number += 1
    try:
        fd = os.open(os.path.join({folder!r}, f"fill-{{number}}"), os.O_CREAT | os.O_WRONLY)
        for _ in range(32):
            written += os.write(fd, block)
    except OSError as error:
        failed = error.errno
    finally:
        os.close(fd)
for name in os.listdir({folder!r}):
    if name.startswith("fill-"):
        os.unlink(os.path.join({folder!r}, name))
print(json.dumps([written, failed]))
"""

FILL_WITH_FILES = """
import json, os
made, failed = 0, None
os.mkdir(os.path.join({folder!r}, "many"))
while failed is None and made < 200_000:
    try:
        os.close(os.open(os.path.join({folder!r}, "many", str(made)), os.O_CREAT | os.O_WRONLY))
        made += 1
    except OSError as error:
        failed = error.errno
print(json.dumps([made, failed]))
"""


def test_code_that_allocates_too_much_gets_a_memory_error_and_goes_on(sandbox: Sandbox, wall: Wall) -> None:
    ran = run(sandbox, "kept = []\nwhile True: kept.append(bytearray(10_000_000))")
    assert ran.error == "MemoryError: "
    assert run(sandbox, "print(len(kept) * 10_000_000)").value < wall.memory


def test_memory_that_no_process_limit_counts_is_ended_by_the_sandboxes_own(sandbox: Sandbox, wall: Wall) -> None:
    with pytest.raises(EndedError):
        run(sandbox, SHARED_MEMORY_BOMB)
    end = sandbox.end(10)
    assert end is not None
    assert end.cause == "out_of_memory"
    assert end.memory_limit == wall.memory
    assert wall.memory * 0.9 < end.peak_memory <= wall.memory


def test_many_small_processes_may_not_use_more_memory_than_one_large_one(sandbox: Sandbox) -> None:
    children = """
import os
for _ in range(8):
    if os.fork() == 0:
        kept = bytearray(os.urandom(1 << 20)) * 100
        import time; time.sleep(3600)
for _ in range(8):
    pid, status = os.wait()
    print(os.WTERMSIG(status))
    break
"""
    ran = run(sandbox, children)
    assert ran.out == "9\n"


@pytest.mark.case("B087")
@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("import os; os._exit(137)", 137),
        ("import sys; sys.exit(137)", 137),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 9),
    ],
)
def test_an_end_that_only_looks_like_a_limit_is_not_taken_for_one(sandbox: Sandbox, code: str, value: int) -> None:
    assert run(sandbox, "raise MemoryError('memory limit exceeded')").error == "MemoryError: memory limit exceeded"
    with pytest.raises(EndedError):
        run(sandbox, code)
    end = sandbox.end(10)
    assert end is not None
    assert (end.cause, end.value) == ("signal" if value == 9 else "exit", value)


@pytest.mark.case("B085")
def test_a_guest_that_is_killed_is_told_at_once(sandbox: Sandbox) -> None:
    with pytest.raises(EndedError):
        run(sandbox, "import os; os.kill(os.getpid(), 9)", seconds=5)


def test_a_fork_bomb_ends_at_the_limit(sandbox: Sandbox, wall: Wall) -> None:
    count, number = run(sandbox, FORK_BOMB).value
    assert number == errno.EAGAIN
    assert count < wall.processes
    members = sandbox.processes()
    assert len(members) <= wall.processes + 1
    assert sandbox.kill()
    assert sandbox.processes() == []
    assert not any(alive(pid) for pid in members)


def test_threads_count_as_processes(sandbox: Sandbox, wall: Wall) -> None:
    count, message = run(sandbox, THREAD_BOMB).value
    assert message == "can't start new thread"
    assert count < wall.processes


@pytest.mark.case("B091")
def test_whoever_burns_all_processors_is_throttled_and_ended(wall: Wall) -> None:
    sandbox = wall.sandbox(cpu=0.1)
    try:
        run(sandbox, "import os\nfor _ in range(4):\n    if os.fork() == 0:\n        while True: pass")
        eventually(sandbox.throttled)
        assert run(sandbox, "print(1)").out == "1\n"
        members = sandbox.processes()
        assert sandbox.kill()
        assert not any(alive(pid) for pid in members)
    finally:
        sandbox.close()
    assert works(wall)


def test_a_loop_that_ignores_interrupts_is_ended_all_the_same(sandbox: Sandbox) -> None:
    begin(
        sandbox,
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); CONNECTION.sendall(b'x')\nwhile True: pass",
    )
    assert sandbox.connection.recv(1) == b"x"
    sandbox.interrupt()
    assert sandbox.end(0.3) is None
    assert sandbox.kill()


def test_a_loop_can_be_interrupted_and_its_names_stay(sandbox: Sandbox) -> None:
    begin(sandbox, "kept = 1; CONNECTION.sendall(b'x')\nwhile True: pass")
    assert sandbox.connection.recv(1) == b"x"
    sandbox.interrupt()
    assert answer(sandbox).error == "KeyboardInterrupt: "
    assert run(sandbox, "print(kept)").out == "1\n"


def test_nothing_outlives_a_sandbox(sandbox: Sandbox) -> None:
    assert run(sandbox, SURVIVORS).value >= 7
    members = sandbox.processes()
    assert len(members) >= 7
    assert sandbox.kill()
    assert sandbox.processes() == []
    assert not any(alive(pid) for pid in members)


@pytest.mark.case("B090")
def test_a_stopped_sandbox_is_ended(sandbox: Sandbox) -> None:
    begin(sandbox, "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
    assert sandbox.end(0.2) is None
    assert sandbox.kill()
    assert sandbox.processes() == []


def test_only_its_own_three_folders_can_be_written_and_each_has_an_end(sandbox: Sandbox, wall: Wall) -> None:
    sizes = {"/dev/shm": wall.temporary, "/tmp": wall.temporary, "/work": wall.workspace}
    written, mounts = run(sandbox, WRITABLE).value
    assert written == sorted(sizes)
    assert [place for place in mounts if place not in sizes and not place.startswith("/dev/")] == ["/proc"]
    for folder, size in sizes.items():
        written, failed = run(sandbox, FILL.format(folder=folder)).value
        assert failed == errno.ENOSPC, folder
        assert size - MEGABYTE <= written <= size, folder


@pytest.mark.parametrize("folder", ["/work", "/tmp", "/dev/shm"])
def test_the_number_of_files_has_an_end(sandbox: Sandbox, wall: Wall, folder: str) -> None:
    made, failed = run(sandbox, FILL_WITH_FILES.format(folder=folder)).value
    assert failed == errno.ENOSPC
    assert made < wall.files


def test_a_file_may_not_be_larger_than_the_workspace(sandbox: Sandbox) -> None:
    assert "File too large" in str(run(sandbox, "open('/work/x', 'wb').truncate(1 << 40)").error)


def test_descriptors_have_an_end(sandbox: Sandbox, wall: Wall) -> None:
    code = "import os\nkept = []\nwhile True: kept.append(os.open('/dev/null', os.O_RDONLY))"
    assert str(run(sandbox, code).error).startswith(f"OSError: [Errno {errno.EMFILE}]")
    assert run(sandbox, "print(len(kept))").value < wall.open_files


def test_limits_cannot_be_raised(sandbox: Sandbox) -> None:
    code = """
import json, resource
raised = {}
for name in ("RLIMIT_DATA", "RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_MEMLOCK"):
    kind = getattr(resource, name)
    _, hard = resource.getrlimit(kind)
    try:
        resource.setrlimit(kind, (hard + 1, hard + 1))
        raised[name] = hard
    except (ValueError, OSError):
        pass
print(json.dumps([raised, resource.getrlimit(resource.RLIMIT_CORE)]))
"""
    # One, not none: only that keeps a crash from the program that the machine may have for crashes, which is root's.
    assert run(sandbox, code).value == [{}, [1, 1]]


def test_a_flood_on_its_connection_harms_only_itself(sandbox: Sandbox) -> None:
    begin(sandbox, "while True: CONNECTION.sendall(bytes(1 << 20))")
    assert sandbox.connection.recv(1 << 16)
    assert sandbox.kill()
