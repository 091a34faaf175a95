"""Workspaces: what a sandbox leaves there stays, and is never more than it may be."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyexec.domain.errors import SandboxNotMadeError
from pyexec.domain.limits import MEGABYTE
from pyexec.walls.bubblewrap import workspaces as module
from pyexec.walls.bubblewrap.contents import USERS
from pyexec.walls.bubblewrap.workspaces import Workspace, Workspaces
from tests.helpers.processes import eventually
from tests.walls.bubblewrap import AttackedBox, AttackedWall
from tests.walls.interface import begin, run

pytestmark = pytest.mark.root
SIZE = 16 * MEGABYTE
FILES = 512
FILL = """
import errno, json, os
written, stopped = 0, None
try:
    with open("/workspace/large", "wb", buffering=0) as file:
        for _ in range(64):
            written += file.write(bytes(1 << 20))
except OSError as error:
    stopped = errno.errorcode[error.errno]
print(json.dumps([written, stopped]))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pe-workspaces-", dir="/var/tmp") as name:
        yield Path(name)


@pytest.fixture
def made() -> Workspaces:
    found = Workspaces(os.environ)
    if found.obstacle is not None:
        pytest.skip(f"no workspaces of a hard size: {found.obstacle}")
    return found


def sandbox_with(wall: AttackedWall, workspace: Workspace) -> AttackedBox:
    with workspace.opened() as folder:
        box = wall.wall.sandbox(wall.limits, [folder])
    workspace.watch(box)
    return AttackedBox(box)


def user_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("Uid:")))


def devices() -> set[str]:
    """Return the loop devices of this machine that are in use for us."""
    return {
        name
        for name in os.listdir("/sys/block")
        if (backing := Path("/sys/block", name, "loop/backing_file")).exists()
        and "pe-workspaces-" in backing.read_text()
    }


def test_what_a_sandbox_leaves_is_there_for_the_next_one_which_is_the_same_user(
    wall: AttackedWall, home: Path, made: Workspaces
) -> None:
    workspace = made.open(home, SIZE)
    users: list[set[int]] = []
    try:
        for code in (
            "import os; os.mkdir('d', 0o700); open('d/a', 'x').write('kept')",
            "open('d/a', 'a').write(' on')",
        ):
            box = sandbox_with(wall, workspace)
            assert run(box, code).error is None
            users.append({user_of(pid) for pid in box.processes()})
            users.append({os.stat("d", dir_fd=workspace.root).st_uid})
            box.close()
        fd = os.open("d/a", os.O_RDONLY, dir_fd=workspace.root)
        with open(fd) as file:
            assert file.read() == "kept on"
    finally:
        workspace.close()
    assert users == [users[0]] * 4
    assert min(users[0]) >= USERS.first + USERS.count // 2
    assert str(home) not in Path("/proc/self/mountinfo").read_text()
    again = made.open(home, SIZE)
    try:
        assert os.listdir(f"/proc/self/fd/{again.root}") == ["d"]
    finally:
        again.remove()
    assert os.listdir(home) == []


def test_no_more_goes_in_than_it_holds_and_the_sandbox_goes_on(
    wall: AttackedWall, home: Path, made: Workspaces
) -> None:
    workspace = made.open(home, SIZE, FILES)
    assert workspace.hard
    try:
        box = sandbox_with(wall, workspace)
        written, stopped = run(box, FILL).value
        assert stopped == "ENOSPC"
        assert SIZE * 0.95 < written < SIZE * 1.1
        assert SIZE * 0.95 < workspace.used() < SIZE * 1.1
        assert run(box, "import os; os.unlink('/workspace/large')").error is None
        made_files = run(
            box,
            """
import errno, json
made, stopped = 0, None
try:
    for made in range(5000):
        open(f"/workspace/{made}", "w").close()
except OSError as error:
    stopped = errno.errorcode[error.errno]
print(json.dumps([made, stopped]))
""",
        ).value
        assert made_files[1] == "ENOSPC"
        assert FILES * 0.9 < made_files[0] <= FILES * 1.1
        assert run(box, FILL.replace("/workspace", "/tmp")).error is None
        box.close()
    finally:
        workspace.remove()


TOO_MUCH = {
    "of 16 MB": """
for name in "ab":
    with open(name, "wb") as file:
        file.write(bytes(9 << 20))
""",
    # Of no name.
    " of 16 MB": """
import os
kept = [open(f"hidden{number}", "wb") for number in range(8)]
for file in kept:
    os.unlink(file.name)
    file.write(bytes(3 << 20)); file.flush()
""",
    # Where nobody may look.
    "16 MB": """
import os
os.makedirs("secret/deep")
open("secret/deep/a", "wb").write(bytes(17 << 20))
for folder in ("secret/deep", "secret", "."):
    os.chmod(folder, 0)
""",
    "of 512 files and folders": """
for number in range(1000):
    open(str(number), "w").close()
""",
    "deep": """
import os
for _ in range(300):
    os.mkdir("d"); os.chdir("d")
""",
}


def test_a_folder_that_the_kernel_does_not_limit_is_watched_and_can_be_emptied(
    wall: AttackedWall, home: Path, made: Workspaces
) -> None:
    made.obstacle = "for this test"
    workspace = made.open(home, SIZE, FILES)
    assert not workspace.hard
    try:
        for why, code in TOO_MUCH.items():
            box = sandbox_with(wall, workspace)
            begin(box, code)
            ended = box.end(30)
            assert ended is not None, code
            assert ended.cause == "killed"
            assert box.box.reason is not None
            assert box.box.reason.startswith("its workspace held ")
            assert why in box.box.reason
            box.close()
            assert workspace.used() > SIZE or "MB" not in why or why[0] == " "
            box = sandbox_with(wall, workspace)
            clean = "import subprocess; subprocess.run('chmod -R 777 /workspace; rm -rf /workspace/*', shell=True)"
            assert run(box, clean).error is None
            box.close()
            assert workspace.used() < MEGABYTE
        box = sandbox_with(wall, workspace)
        begin(box, TOO_MUCH["deep"])
        assert box.end(30) is not None
        box.close()
    finally:
        workspace.remove()
    assert os.listdir(home) == []


def test_a_workspace_is_in_one_place_at_a_time(home: Path, made: Workspaces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TAKEN_SECONDS", 0.1)
    workspace = made.open(home, SIZE)
    try:
        with pytest.raises(SandboxNotMadeError, match="in use by another process"):
            made.open(home, SIZE)
    finally:
        workspace.close()
    made.open(home, SIZE).remove()


def test_a_killed_owner_leaves_no_device_and_a_workspace_that_can_be_used_again(home: Path, made: Workspaces) -> None:
    owner = f"""
import os, signal
from pathlib import Path
from pyexec.walls.bubblewrap.workspaces import Workspaces
workspace = Workspaces(os.environ).open(Path({str(home)!r}), {SIZE})
with open(os.open("a", os.O_CREAT | os.O_WRONLY, dir_fd=workspace.root), "w") as file:
    file.write("kept")
os.kill(os.getpid(), signal.SIGKILL)
"""
    before = devices()
    subprocess.run([sys.executable, "-c", owner], check=False, timeout=60)
    eventually(lambda: devices() == before)
    workspace = made.open(home, SIZE)
    try:
        with open(os.open("a", os.O_RDONLY, dir_fd=workspace.root)) as file:
            assert file.read() == "kept"
    finally:
        workspace.remove()
    eventually(lambda: devices() == before)


def test_a_damaged_workspace_is_mended(home: Path, made: Workspaces) -> None:
    made.open(home, SIZE).close()
    with open(home / "workspace.ext4", "r+b") as file:
        file.seek(4096)
        file.write(bytes(8))  # Where what tells of the files is.
    workspace = made.open(home, SIZE)
    workspace.remove()


@pytest.mark.parametrize("rounds", [5, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_many_rounds_leave_nothing_behind(wall: AttackedWall, home: Path, made: Workspaces, rounds: int) -> None:
    def once() -> None:
        workspace = made.open(home, SIZE)
        box = sandbox_with(wall, workspace)
        assert run(box, "open('a', 'a').write('x')").error is None
        box.close()
        workspace.close()

    once()
    before = devices(), len(os.listdir("/proc/self/fd"))  # What the first has had may be just going.
    for _ in range(rounds):
        once()
    eventually(lambda: devices() <= before[0] and len(os.listdir("/proc/self/fd")) <= before[1])
    workspace = made.open(home, SIZE)
    assert os.stat("a", dir_fd=workspace.root).st_size == rounds + 1
    workspace.remove()


def test_a_sandbox_that_outlives_its_owner_keeps_its_workspace_from_the_next_one(
    wall: AttackedWall, home: Path, made: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAKEN_SECONDS", 0.1)
    workspace = made.open(home, SIZE)
    box = sandbox_with(wall, workspace)
    workspace.close()  # As the kernel does for one that is killed.
    try:
        with pytest.raises(SandboxNotMadeError, match="in use by another process"):
            made.open(home, SIZE)
        assert run(box, "open('a', 'w').write('still')").error is None
    finally:
        box.close()
    monkeypatch.setattr(module, "TAKEN_SECONDS", 10.0)
    again = made.open(home, SIZE)
    assert os.stat("a", dir_fd=again.root).st_size == 5
    again.remove()
