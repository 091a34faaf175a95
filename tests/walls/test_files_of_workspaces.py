"""The files of a workspace, from outside, while a sandbox has it."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyexec.domain.errors import DiskFullError, InvalidArgumentError
from pyexec.domain.limits import MEGABYTE, FileLimits
from pyexec.domain.principals import Principal
from pyexec.sandbox import forks
from pyexec.sessions import changes, paths
from pyexec.sessions.files import SessionFiles
from pyexec.sessions.workspaces import WorkspaceFolder
from pyexec.walls.bubblewrap.workspaces import Workspace, Workspaces
from tests.walls.bubblewrap import AttackedBox, AttackedWall
from tests.walls.interface import run

pytestmark = pytest.mark.root
SOMEBODY = Principal(issuer="local", subject="somebody")
SIZE = 16 * MEGABYTE


@dataclass(frozen=True)
class One:
    """The workspace of every session."""

    workspace: Workspace

    def open(self, principal: Principal, session_id: str) -> WorkspaceFolder:
        del principal, session_id
        return WorkspaceFolder(fd=os.dup(self.workspace.root))


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    found = Workspaces(os.environ)
    if found.obstacle is not None:
        pytest.skip(f"no workspaces of a hard size: {found.obstacle}")
    with tempfile.TemporaryDirectory(prefix="pe-workspaces-", dir="/var/tmp") as folder:
        made = found.open(Path(folder), SIZE, 512)
        try:
            yield made
        finally:
            made.remove()


@pytest.fixture
def box(wall: AttackedWall, workspace: Workspace) -> Iterator[AttackedBox]:
    with workspace.opened() as folder:
        made = AttackedBox(wall.wall.sandbox(wall.limits, [folder]))
    try:
        yield made
    finally:
        made.close()


async def test_outside_and_inside_work_on_the_same_files(box: AttackedBox, workspace: Workspace) -> None:
    files = SessionFiles(One(workspace), FileLimits(upload=2 * SIZE), 60_000)
    await files.write(SOMEBODY, "s", "in/a.txt", "from outside", encoding="text", manner="create")
    before = changes.snapshot(workspace.root)
    code = (
        "import os; print(open('/workspace/in/a.txt').read()); open('/workspace/in/a.txt', 'a').write('!')\n"
        "open('/workspace/in/b', 'x').write('b'); os.symlink('/etc/passwd', '/workspace/link')"
    )
    assert run(box, code).out == "from outside\n"
    told = changes.compare(before, changes.snapshot(workspace.root)).files
    assert [(one.path, one.change) for one in told] == [("in/a.txt", "changed"), ("in/b", "created")]
    assert (await files.read(SOMEBODY, "s", "/workspace/in/a.txt")).text == "from outside!"
    with pytest.raises(InvalidArgumentError, match="links are not followed"):
        await files.read(SOMEBODY, "s", "link")
    with pytest.raises(DiskFullError, match="too full"):
        await files.write(SOMEBODY, "s", "large", "x" * (SIZE + SIZE // 4), encoding="text", manner="create")
    assert (await files.delete(SOMEBODY, "s", "in", recursive=True)).count == 3
    assert run(box, "import os; print(os.listdir('/workspace'))").out == "['link']\n"


def test_a_path_as_the_code_has_it_is_that_of_the_workspace() -> None:
    assert paths.INSIDE == forks.WORKSPACE
