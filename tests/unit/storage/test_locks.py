import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyexec.storage.locks import held, try_hold
from tests.helpers.processes import eventually

HOLD = """
import os, sys
from pathlib import Path
from pyexec.storage.locks import held

with held(Path(sys.argv[1])) as fd:
    os.pwrite(fd, b"resolving\\n", 0)
    print("held", flush=True)
    sys.stdin.readline()
    os.pwrite(fd, b"ready\\n", 0)
    if sys.argv[2:] == ["remove"]:
        os.unlink(sys.argv[1])
    print("leaving", flush=True)
    sys.stdin.readline()
"""
WAIT = """
import os, sys
from pathlib import Path
from pyexec.storage.locks import held

told = []

def tell(line):
    if line not in told:
        told.append(line)
        print(line.decode(), flush=True)

with held(Path(sys.argv[1]), tell) as fd:
    print("held", os.fstat(fd).st_size, os.path.samestat(os.fstat(fd), os.stat(sys.argv[1])), flush=True)
"""


class Other:
    """Another process that does something with a lock."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._stdin = process.stdin
        self._stdout = process.stdout

    def says(self) -> str:
        return self._stdout.readline().rstrip("\n")

    def go_on(self) -> None:
        self._stdin.write("\n")
        self._stdin.flush()


@contextmanager
def other(code: str, *arguments: str | Path) -> Generator[Other]:
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Other(process)
        finally:
            process.kill()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_a_lock_is_made_for_its_owners_eyes_only_and_empty(lock: Path) -> None:
    lock.write_text("left by somebody\n")
    with held(lock) as fd:
        assert os.fstat(fd).st_size == 0
    lock.unlink()
    with held(lock):
        assert lock.stat().st_mode & 0o777 == 0o600


def test_a_lock_is_free_again_whatever_happened_in_between(lock: Path) -> None:
    for hold in (held, try_hold):
        with pytest.raises(RuntimeError), hold(lock):
            raise RuntimeError
    with try_hold(lock) as free:
        assert free


def test_one_holds_a_lock_at_a_time_or_many_who_share_it(lock: Path) -> None:
    with held(lock):
        for shared in (False, True):
            with try_hold(lock, shared=shared) as free:
                assert not free
    with try_hold(lock, shared=True) as first, try_hold(lock, shared=True) as second, try_hold(lock) as alone:
        assert (first, second, alone) == (True, True, False)


def test_a_lock_holds_between_processes_and_ends_with_its_process(lock: Path) -> None:
    with other(HOLD, lock) as holder:
        assert holder.says() == "held"
        with try_hold(lock) as free:
            assert not free
        holder.process.kill()
        holder.process.wait()
        with try_hold(lock) as free:
            assert free


def test_who_waits_is_told_the_line_of_the_holder_and_goes_on_when_it_leaves(lock: Path) -> None:
    with other(HOLD, lock) as holder:
        assert holder.says() == "held"
        with other(WAIT, lock) as waiting:
            assert waiting.says() == "resolving"
            holder.go_on()
            assert waiting.says() == "ready"
            holder.go_on()
            assert waiting.says() == "held 0 True"


def test_who_waited_for_a_lock_that_was_removed_holds_the_one_that_has_its_name(lock: Path) -> None:
    with other(HOLD, lock, "remove") as holder:
        assert holder.says() == "held"
        with other(WAIT, lock) as waiting:
            assert waiting.says() == "resolving"
            holder.go_on()
            assert holder.says() == "leaving"
            assert waiting.says() == "held 0 True"
            assert lock.exists()


def test_a_lock_that_is_removed_by_its_holder_is_never_held_by_two(lock: Path) -> None:
    """Many take the lock and remove it; each looks whether somebody else is inside."""
    code = """
import os, sys
from pathlib import Path
from pyexec.storage.locks import held

lock, inside = Path(sys.argv[1]), Path(sys.argv[1] + ".inside")
for _ in range(20):
    with held(lock):
        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
        os.unlink(inside)
        lock.unlink()
print("done")
"""
    with other(code, lock) as one, other(code, lock) as two, other(code, lock) as three:
        assert [each.says() for each in (one, two, three)] == ["done"] * 3


def test_the_line_of_a_holder_is_short_and_one_line(lock: Path) -> None:
    lines: list[bytes] = []

    def tell(line: bytes) -> None:
        lines.append(line)
        raise InterruptedError

    with held(lock) as fd:
        for text in (b"", b"one\ntwo\n", b"x" * 10_000):
            os.pwrite(fd, text, 0)
            with pytest.raises(InterruptedError), held(lock, tell):
                pass
    assert lines == [b"", b"one", b"x" * 500]


def test_a_lock_leaves_no_open_files_behind(lock: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with held(lock):
        for _ in range(5):
            with try_hold(lock) as free:
                assert not free
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_lock_is_not_inherited(lock: Path) -> None:
    with held(lock):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert eventually(lambda: _free(lock))
    finally:
        child.kill()
        child.wait()


def test_a_lock_in_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), held(tmp_path / "gone" / "lock"):
        pass


def _free(lock: Path) -> bool:
    with try_hold(lock) as free:
        return free
