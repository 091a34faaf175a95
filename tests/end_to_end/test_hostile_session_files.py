"""What a session's code may leave in its folder to harm whoever looks at it from outside."""

import base64
import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyexec.sessions import changes
from pyexec.storage import beneath
from tests.end_to_end.session_files import ANN, FilesClient, Folders, Workspace, files_client

SECRET = "what lies outside"
ROUNDS = 25

SWAP = """
os.makedirs('d')
open('d/f', 'w').write('inside')
os.symlink(OUTSIDE, 'link')
print('ready', flush=True)
while True:
    try:
        os.rename('d', 'real')
        os.rename('link', 'd')
        os.rename('d', 'link')
        os.rename('real', 'd')
        open('d/f', 'w').write('inside')
    except OSError:  # Somebody has made a folder where there was none for a moment.
        os.rename('d', f'old{time.monotonic_ns()}')
        os.rename('real', 'd')
    for name, source in (('f', 'own'), ('f', 'out')):
        try:
            os.unlink(name)
        except FileNotFoundError:
            pass
        if source == 'own':
            open(name, 'w').write('inside')
        else:
            os.symlink(OUTSIDE + '/f', name)
"""

SWAP_BELOW = """
os.symlink(OUTSIDE, 'link')
print('ready', flush=True)
while True:
    try:
        os.makedirs('d/e', exist_ok=True)
        open('d/e/x', 'w')
        os.rename('d/e', 'aside')
        os.rename('link', 'd/e')
        os.rename('d/e', 'link')
        os.rename('aside', 'd/e')
    except OSError:
        pass
    if not os.path.lexists('link'):
        os.symlink(OUTSIDE, 'link')
"""


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of files are made there in no time."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="pe-", dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def outside(base: Path) -> Path:
    folder = base / "outside"
    folder.mkdir()
    (folder / "f").write_text(SECRET)
    folder.chmod(0o777)
    return folder


@pytest.fixture
def folders(base: Path) -> Folders:
    return Folders(base / "sessions")


@pytest.fixture
def workspace(folders: Folders) -> Workspace:
    return folders.make(ANN, "s")


@pytest.fixture
async def files(folders: Folders, workspace: Workspace) -> AsyncIterator[FilesClient]:
    async with files_client(folders) as connected:
        yield connected


@pytest.mark.case("B118")
async def test_no_link_is_followed_in_any_direction(files: FilesClient, workspace: Workspace, outside: Path) -> None:
    workspace.run(
        f"out = {str(outside)!r}\n"
        "open('own', 'w').write('x')\n"
        "for target, name in ((out, 'dir'), (out + '/f', 'file'), ('own', 'inward'), ('/proc/self/environ', 'magic'),\n"
        "                     ('/proc/self/root', 'root'), ('loop', 'loop'), ('.', 'here'), ('/nowhere', 'broken')):\n"
        "    os.symlink(target, name)\n"
    )
    listed = {one["path"]: one for one in (await files.get("list_files"))["files"]}
    links = {name for name, one in listed.items() if one["kind"] == "link"}
    assert links == {"dir", "file", "inward", "magic", "root", "loop", "here", "broken"}
    assert all("uri" not in listed[name] for name in links)
    reachable = ["dir/f", "root/etc/passwd", "here/own", "broken/x", *links]
    for path in reachable:
        code, said = await files.refused("download_file", path=path)
        assert (code, said.partition(" is ")[2]) == (
            "invalid_argument",
            "a symbolic link, or lies behind one; links are not followed.",
        )
        assert (await files.refused("list_files", path=path))[0] in ("invalid_argument", "not_found")
    for path in ("dir/new", "dir/f", "root/tmp/new", "here/new"):
        manners: tuple[dict[str, Any], ...] = ({}, {"overwrite": True}, {"append": True})
        for more in manners:
            assert "link" in (await files.refused("upload_file", path=path, content="x", **more))[1]
        assert "link" in (await files.refused("delete_file", path=path))[1]
    assert "link" in (await files.refused("upload_file", path="file", content="x", append=True))[1]
    for name in links:
        await files.get("delete_file", path=name)
    assert await files.paths() == ["own"]
    assert [one.name for one in outside.iterdir()] == ["f"]
    assert (outside / "f").read_text() == SECRET


async def test_nothing_outside_is_reached_while_links_are_swapped(
    files: FilesClient, workspace: Workspace, outside: Path
) -> None:
    swapping = workspace.start(SWAP.replace("OUTSIDE", repr(str(outside))))
    seen: set[str] = set()
    try:
        for number in range(ROUNDS):
            for path in ("d/f", "f"):
                answer = await files.call("download_file", path=path)
                seen.add(answer.data.get("content", answer.data.get("error_code", "")))
            await files.call("upload_file", path=f"d/new{number % 3}", content="x", overwrite=True)
            await files.call("upload_file", path=f"d/sub{number % 3}/x", content="x", append=True)
            await files.call("delete_file", path="d/f")
            await files.call("list_files")
            snapshot(workspace)
        assert swapping.poll() is None
    finally:
        swapping.kill()
        swapping.wait()
        assert swapping.stdout is not None
        swapping.stdout.close()
    assert SECRET not in seen
    assert seen <= {"inside", "", "not_found", "invalid_argument"}
    assert [one.name for one in outside.iterdir()] == ["f"]
    assert (outside / "f").read_text() == SECRET


async def test_a_folder_that_is_deleted_while_it_is_swapped_takes_nothing_outside_with_it(
    files: FilesClient, workspace: Workspace, outside: Path
) -> None:
    swapping = workspace.start(SWAP_BELOW.replace("OUTSIDE", repr(str(outside))))
    try:
        for _ in range(ROUNDS):
            await files.call("delete_file", path="d", recursive=True)
    finally:
        swapping.kill()
        swapping.wait()
        assert swapping.stdout is not None
        swapping.stdout.close()
    assert (outside / "f").read_text() == SECRET


async def test_only_regular_files_of_one_name_are_opened(files: FilesClient, workspace: Workspace) -> None:
    workspace.run(
        "os.mkfifo('pipe'); open('a', 'w').write('x'); os.link('a', 'b'); os.mkdir('d')\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('socket')"
    )
    for path, what in (
        ("pipe", "a pipe"),
        ("socket", "a socket"),
        ("a", "hard links"),
        ("b", "hard links"),
        ("d", "a folder"),
    ):
        code, said = await files.refused("download_file", path=path)
        assert (code, what in said) == ("invalid_argument", True)
        code, said = await files.refused("upload_file", path=path, content="x", append=True)
        assert (code, what in said) == ("invalid_argument", True)
    kinds = {one["path"]: one["kind"] for one in (await files.get("list_files"))["files"]}
    assert kinds == {"pipe": "other", "socket": "other", "a": "file", "b": "file", "d": "folder"}
    for path in ("pipe", "socket", "b"):
        await files.get("delete_file", path=path)
    assert (await files.get("download_file", path="a"))["content"] == "x"


async def test_a_pipe_with_somebody_at_its_other_end_is_none_the_better(
    files: FilesClient, workspace: Workspace
) -> None:
    reader = workspace.start(
        "os.mkfifo('pipe'); fd = os.open('pipe', os.O_RDWR); os.write(fd, b'x' * 100); print('ready', flush=True)\n"
        "time.sleep(300)"
    )
    try:
        assert "a pipe" in (await files.refused("download_file", path="pipe"))[1]
        assert "a pipe" in (await files.refused("upload_file", path="pipe", content="x", append=True))[1]
    finally:
        reader.kill()
        reader.wait()
        assert reader.stdout is not None
        reader.stdout.close()


@pytest.mark.root
async def test_devices_are_not_read(files: FilesClient, workspace: Workspace) -> None:
    os.mknod(workspace.path / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    code, said = await files.refused("download_file", path="zero")
    # The second where the kernel knows no devices in that file system.
    assert code == "invalid_argument"
    assert "a device" in said or "forbids" in said


async def test_a_sparse_file_of_a_terabyte_is_read_where_that_is_asked(
    files: FilesClient, workspace: Workspace
) -> None:
    workspace.run("f = open('huge', 'wb'); f.truncate(2 ** 40); f.seek(2 ** 40 - 3); f.write(b'end')")
    assert (await files.get("list_files"))["files"][0]["size"] == 2**40
    begun = await files.call("download_file", path="huge")
    assert (begun.data["size"], begun.data["next_offset"]) == (2**40, 8 * 2**20)
    assert (await files.get("download_file", path="huge", offset=2**40 - 3))["content"] == "end"
    assert (await files.refused("download_file", path="huge", offset=2**70))[0] == "invalid_argument"
    with pytest.raises(Exception, match="by ranges"):
        await files.client.read_resource("workspace://s/huge")


async def test_ten_thousand_files_are_listed_in_part_and_counted(files: FilesClient, workspace: Workspace) -> None:
    workspace.run("for n in range(10000): os.close(os.open(f'{n:05}', os.O_CREAT | os.O_WRONLY))")
    listed = await files.call("list_files")
    assert (listed.data["total"], listed.data["complete"], len(listed.data["files"])) == (10_000, True, 500)
    assert listed.data["files"][499]["path"] == "00499"
    assert len(listed.text) < 30_000
    assert "9800 more are left out" in listed.text
    assert len(await files.paths(pattern="*77")) == 100


async def test_long_names_and_deep_folders_are_no_trouble(files: FilesClient, workspace: Workspace) -> None:
    workspace.run(
        "open('n' * 255, 'w').write('long')\n"
        "os.mkdir('deep'); os.chdir('deep')\n"
        "for _ in range(300): os.mkdir('d' * 20); os.chdir('d' * 20)\n"
        "open('bottom', 'w')"
    )
    listed = await files.get("list_files")
    assert (listed["complete"], listed["total"]) == (False, 65)
    assert (await files.get("download_file", path="n" * 255))["content"] == "long"
    assert "too long" in (await files.refused("download_file", path="n" * 256))[1]
    assert "too long" in (await files.refused("download_file", path="d/" * 2500))[1]
    assert not snapshot(workspace).complete
    assert (await files.get("delete_file", path="deep", recursive=True))["count"] == 302
    assert await files.paths() == ["n" * 255]


async def test_modes_that_forbid_everything_hide_nothing_from_a_deletion(
    files: FilesClient, workspace: Workspace
) -> None:
    workspace.run(
        "os.makedirs('d/e/f'); open('d/e/g', 'w').write('x'); open('h', 'w').write('y'); os.chmod('h', 0)\n"
        "os.chmod('d/e/f', 0); os.chmod('d/e', 0); os.chmod('d', 0)"
    )
    answer = await files.call("download_file", path="h")
    if os.geteuid() == 0:
        assert answer.data["content"] == "y"
    else:
        assert "its mode" in answer.data["error"]
        assert not (await files.get("list_files"))["complete"]
    assert (await files.get("delete_file", path="d", recursive=True))["count"] == 4
    assert (await files.get("upload_file", path="h", content="z", overwrite=True))["size"] == 1


async def test_times_and_modes_that_make_no_sense_are_listed(files: FilesClient, workspace: Workspace) -> None:
    workspace.run(
        "open('a', 'w'); os.utime('a', ns=(2 ** 62, 2 ** 62)); open('b', 'w'); os.utime('b', (-(2 ** 31), 5))"
    )
    assert await files.paths() == ["a", "b"]
    workspace.run("os.utime('a', (-(2 ** 31), -(2 ** 31)))")
    (first, _second) = (await files.get("list_files"))["files"]
    assert "modified" not in first


async def test_a_file_that_grows_and_shrinks_meanwhile_is_read_as_far_as_it_goes(
    files: FilesClient, workspace: Workspace
) -> None:
    writer = workspace.start(
        "open('f', 'w').write('x' * 100000); print('ready', flush=True)\n"
        "while True:\n    os.truncate('f', 0)\n    open('f', 'w').write('x' * 100000)"
    )
    try:
        for _ in range(ROUNDS):
            answer = await files.call("download_file", path="f", encoding="base64")
            assert set(base64.b64decode(answer.data.get("content", ""))) <= {0, ord("x")}
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert writer.stdout is not None
        writer.stdout.close()


async def test_a_kernel_without_the_call_is_refused_with_a_sentence(
    files: FilesClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beneath, "_OPENAT2", 100_000)  # Which no kernel knows.
    workspace.run("open('a', 'w')")
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("list_files", {}),
        ("download_file", {"path": "a"}),
        ("upload_file", {"path": "b", "content": "x"}),
        ("delete_file", {"path": "a"}),
    )
    for tool, more in asked:
        code, said = await files.refused(tool, **more)
        assert (code, "no openat2" in said, "Linux 5.6" in said) == ("unsupported_platform", True, True)
    assert workspace.run("print(os.listdir())") == "['a']\n"


@pytest.mark.root
async def test_a_full_disk_leaves_what_was_there(files: FilesClient, workspace: Workspace) -> None:
    folder = workspace.path
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k,mode=777", "tmpfs", folder], check=True)
    try:
        await files.get("upload_file", path="a", content="x" * 50_000)
        for how in ("overwrite", "append"):
            given: dict[str, Any] = {"path": "a", "content": "y" * 90_000, how: True}
            code, said = await files.refused("upload_file", **given)
            assert (code, "delete_file makes room" in said) == ("disk_full", True)
        assert (await files.get("download_file", path="a"))["content"] == "x" * 50_000
        assert await files.paths() == ["a"]
    finally:
        subprocess.run(["umount", folder], check=True)


def snapshot(workspace: Workspace) -> changes.Snapshot:
    fd = os.open(workspace.path, os.O_RDONLY)
    try:
        return changes.snapshot(fd)
    finally:
        os.close(fd)
