"""Folders of the machine in a sandbox: what it may do with them, and what it must not reach through them."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import InvalidArgumentError, SandboxNotMadeError
from pyexec.walls.bubblewrap.folders import Folder
from tests.walls.bubblewrap import AttackedBox, AttackedWall
from tests.walls.interface import Sandbox, run, works

pytestmark = pytest.mark.root


@pytest.fixture
def machine() -> Iterator[Path]:
    """A folder of the machine that no sandbox could get to by its path."""
    with tempfile.TemporaryDirectory(prefix="pe-folders-", dir="/var/tmp") as name:
        yield Path(name)


def made(path: Path, **files: str) -> Path:
    path.mkdir(parents=True)
    for file, text in files.items():
        (path / file).write_text(text)
    return path


def value(sandbox: Sandbox, code: str) -> Any:
    return run(sandbox, f"import json, os\n{code}\nprint(json.dumps(found))").value


def test_a_writable_folder_and_read_only_ones_are_where_they_shall_be(wall: AttackedWall, machine: Path) -> None:
    workspace, packages, data = (made(machine / name, a=name) for name in ("workspace", "packages", "data"))
    attacked = AttackedBox(
        wall.wall.sandbox(
            wall.limits,
            [
                Folder(place="/workspace", source=workspace, writable=True),
                Folder(place="/packages", source=packages),
                Folder(place="/data/sales", source=data, programs=False),
            ],
        )
    )
    try:
        found = value(
            attacked,
            """
open("b", "w").write("written")
os.makedirs("deep/er"); os.symlink("/packages/a", "deep/link")
found = {"cwd": os.getcwd(), "seen": [open(p + "/a").read() for p in ("/workspace", "/packages", "/data/sales")],
         "root": sorted(os.listdir("/data")), "link": open("deep/link").read(), "refused": []}
for place in ("/packages", "/data/sales", "/data", "/"):
    for attempt in (lambda: open(place + "/new", "w"), lambda: os.mkdir(place + "/d"), lambda: os.chmod(place, 0o777),
                    lambda: os.open(place + "/a", os.O_RDWR)):
        try:
            attempt(); found["refused"].append(place)
        except OSError:
            pass
found["mounts"] = {line.split()[4]: line.split()[5] for line in open("/proc/self/mountinfo")}
""",
        )
    finally:
        attacked.close()
    assert found["cwd"] == "/workspace"
    assert found["seen"] == ["workspace", "packages", "data"]
    assert found["root"] == ["sales"]
    assert found["link"] == "packages"
    assert found["refused"] == []
    options = {place: set(found["mounts"][place].split(",")) for place in ("/workspace", "/packages", "/data/sales")}
    assert {"rw", "nosuid", "nodev"} <= options["/workspace"]
    assert {"ro", "nosuid", "nodev"} <= options["/packages"]
    assert "noexec" not in options["/packages"]
    assert {"ro", "nosuid", "nodev", "noexec"} <= options["/data/sales"]
    assert (workspace / "b").read_text() == "written"
    assert str(machine) not in Path("/proc/self/mountinfo").read_text()
    assert works(wall)


def sandbox_with(wall: AttackedWall, *folders: Folder) -> AttackedBox:
    return AttackedBox(wall.wall.sandbox(wall.limits, folders))


def test_another_sandbox_does_not_see_them_and_nothing_is_left_of_them(wall: AttackedWall, machine: Path) -> None:
    mine, other = made(machine / "mine", a="mine"), made(machine / "other", a="other", secret="other")
    first = sandbox_with(wall, Folder(place="/workspace", source=mine, writable=True))
    second = sandbox_with(wall, Folder(place="/workspace", source=other, writable=True))
    third = wall.sandbox()
    reach = f"""
found = []
os.symlink("../other", "link"); os.symlink({str(other)!r}, "straight")
for path in ("../other/a", "/workspace/../other/a", "link/a", "straight/a", {str(other / "a")!r},
             "/proc/self/root/../other/a", "/proc/self/cwd/../other/a", "/proc/1/root/workspace/a",
             *(f"/proc/self/fd/{{number}}/../other/a" for number in range(64)),
             *(f"/proc/{{pid}}/cwd/a" for pid in range(1, 64) if pid != os.getpid())):
    try:
        found.append(open(path).read())
    except OSError:
        pass
"""
    places = "found = {place: os.listdir(place) for place in ('/workspace', '/packages', '/code', '/data', '/work')}"
    try:
        assert value(first, reach) == []
        assert value(second, "found = sorted(os.listdir('.'))") == ["a", "secret"]
        assert [*value(third, places).values()] == [[]] * 5
        assert wall.wall._server is not None
        for pid in wall.wall._server[1].members():
            assert str(machine) not in Path(f"/proc/{pid}/mountinfo").read_text()
            assert not [fd for fd in Path(f"/proc/{pid}/fd").iterdir() if str(machine) in os.readlink(fd)]
        users = [os.stat(folder / "a").st_uid for folder in (mine, other)]
        assert users == [0, 0]
        assert len({os.stat(folder).st_uid for folder in (machine, mine, other)}) == 3
    finally:
        for box in (first, second, third):
            box.close()
    assert str(machine) not in Path("/proc/self/mountinfo").read_text()


def test_what_is_read_only_stays_so_and_what_is_writable_gives_no_privilege(wall: AttackedWall, machine: Path) -> None:
    workspace, packages = made(machine / "workspace"), made(machine / "packages", a="a")
    os.chmod(packages, 0o777)
    os.chmod(packages / "a", 0o777)
    attacked = sandbox_with(
        wall,
        Folder(place="/workspace", source=workspace, writable=True),
        Folder(place="/packages", source=packages),
    )
    code = """
import ctypes, errno, mmap, stat, subprocess
libc = ctypes.CDLL(None, use_errno=True)
found = {}
def attempt(name, action):
    try:
        action()
        found[name] = "done"
    except OSError as error:
        found[name] = errno.errorcode[error.errno]
def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
def syscall(number, *arguments):
    call(libc.syscall(ctypes.c_long(number), *arguments))
attempt("write", lambda: open("/packages/a", "r+"))
attempt("make", lambda: open("/packages/b", "w"))
attempt("reopen", lambda: open(f"/proc/self/fd/{os.open('/packages/a', os.O_RDONLY)}", "r+"))
attempt("map", lambda: mmap.mmap(os.open("/packages/a", os.O_RDONLY), 1, mmap.MAP_SHARED))
attempt("link", lambda: os.link("/packages/a", "/workspace/b"))
attempt("rename", lambda: os.rename("/packages/a", "/workspace/b"))
attempt("mode", lambda: os.chmod("/packages/a", 0o600))
attempt("remount", lambda: call(libc.mount(b"none", b"/packages", None, 32 | 4096, None)))
attempt("bind", lambda: call(libc.mount(b"/packages", b"/work", None, 4096, None)))
attempt("unmount", lambda: call(libc.umount2(b"/packages", 2)))
attempt("open_tree", lambda: syscall(428, ctypes.c_long(-100), b"/packages", ctypes.c_long(1)))
attempt("mount_setattr", lambda: syscall(442, ctypes.c_long(-100), b"/packages", ctypes.c_long(0), bytes(32), 32))
attempt("handle", lambda: syscall(304, ctypes.c_long(3), bytes(64), ctypes.c_long(0)))
attempt("device", lambda: os.mknod("/workspace/device", stat.S_IFBLK | 0o666, os.makedev(254, 0)))
with open("/usr/bin/id", "rb") as source, open("/workspace/id", "wb") as copy:
    copy.write(source.read())
os.chmod("/workspace/id", 0o6755)
found["user"] = subprocess.run(["/workspace/id", "-u"], capture_output=True, text=True).stdout
found["descriptors"] = [os.readlink(f"/proc/self/fd/{number}").split(":")[0] for number in range(4)]
"""
    try:
        found = value(attacked, code)
    finally:
        attacked.close()
    assert found == {
        **dict.fromkeys(("write", "make", "reopen", "mode"), "EROFS"),
        **dict.fromkeys(("link", "rename"), "EXDEV"),
        "map": "EACCES",
        **dict.fromkeys(("remount", "bind", "unmount", "open_tree", "mount_setattr", "handle", "device"), "EPERM"),
        "user": "1000\n",
        "descriptors": ["/dev/null", "pipe", "pipe", "socket"],
    }
    assert (packages / "a").read_text() == "a"
    assert works(wall)


def test_what_is_put_into_a_folder_while_a_sandbox_has_it_appears_there(wall: AttackedWall, machine: Path) -> None:
    packages = made(machine / "packages")
    attacked = sandbox_with(wall, Folder(place="/packages", source=packages))
    try:
        assert value(attacked, "found = os.listdir('/packages')") == []
        (packages / "late.py").write_text("value = 42")
        assert value(attacked, "import sys; sys.path.append('/packages'); import late; found = late.value") == 42
    finally:
        attacked.close()


def test_what_is_no_folder_for_a_sandbox_is_refused(wall: AttackedWall, machine: Path) -> None:
    folder = made(machine / "folder", file="")
    (machine / "link").symlink_to(folder)
    for source, why in (("link", "Not a directory"), ("missing", "No such file"), ("folder/file", "Not a directory")):
        with pytest.raises(SandboxNotMadeError, match=why):
            wall.wall.sandbox(folders=[Folder(place="/code", source=machine / source)])
    for place in ("/work", "/usr", "/data", "/data/", "/data/..", "/data/a/b", "/workspace/a", "/data/" + "a" * 65):
        with pytest.raises(InvalidArgumentError, match="no place for a folder"):
            Folder(place=place, source=folder)
    with pytest.raises(InvalidArgumentError, match="one folder of this machine"):
        wall.wall.sandbox(
            folders=[Folder(place=place, source=folder, writable=True) for place in ("/workspace", "/code")]
        )
    with pytest.raises(InvalidArgumentError, match="two for one place"):
        wall.wall.sandbox(folders=[Folder(place="/code", source=folder)] * 2)
    with open("/dev/null", "rb") as file, pytest.raises(SandboxNotMadeError, match="folders: Invalid argument"):
        wall.wall.sandbox(folders=[Folder(place="/code", source=file.fileno())])
    assert works(wall)
