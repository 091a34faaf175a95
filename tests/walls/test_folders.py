"""Folders of the machine in a sandbox: what it may do with them, and what it must not reach through them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
