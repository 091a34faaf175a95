"""A session's cells, run by a real guest, go out as a notebook and a script that give the same values again."""

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from fastmcp import Client, FastMCP
from mcp_types import ResourceLink, TextResourceContents

from pyexec.domain.errors import NotFoundError
from pyexec.domain.limits import FileLimits
from pyexec.domain.principals import Principal
from pyexec.mcp.cancellations import CancellationWatch
from pyexec.mcp.export_tools import add_export_tool
from pyexec.mcp.files_tools import add_files_tools
from pyexec.mcp.running import Desk
from pyexec.sessions.cells import Cell, SessionEnvironment
from pyexec.sessions.export import SessionExport
from pyexec.sessions.files import SessionFiles
from tests.end_to_end.session_cells import CELLS, ran
from tests.end_to_end.session_files import ANN, FilesClient, Folders, Workspace

LOCK = "six==1.17.0 \\\n    --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274\n"


@dataclass(frozen=True)
class History:
    """The history of the one session there is."""

    ran: Sequence[Cell]

    def cells(self, principal: Principal, session_id: str) -> Sequence[Cell]:
        if (principal, session_id) != (ANN, "s"):
            raise NotFoundError(f"There is no session {session_id!r}.")
        return self.ran

    def environment(self, principal: Principal, session_id: str) -> SessionEnvironment:
        self.cells(principal, session_id)
        return SessionEnvironment(python_version="{}.{}.{}".format(*sys.version_info), lock=LOCK)


@dataclass(frozen=True)
class Services:
    """Services with nothing but files and exports."""

    files: SessionFiles
    exports: SessionExport
    sessions: None = None

    async def get(self) -> Any:
        return self


@pytest.fixture(scope="module")
def cells() -> Sequence[Cell]:
    return ran(*CELLS)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Folders(tmp_path).make(ANN, "s")


@pytest.fixture
async def files(tmp_path: Path, workspace: Workspace, cells: Sequence[Cell]) -> AsyncIterator[FilesClient]:
    folders = Folders(tmp_path)
    session_files = SessionFiles(folders, FileLimits(upload=1), 60_000)
    services = Services(session_files, SessionExport(History(cells), session_files))
    server = FastMCP("exports", mask_error_details=True)
    desk = Desk(
        services=services,
        principal=lambda: ANN,
        cancellations=CancellationWatch(),
        wait_seconds=20,
        sandboxed=True,
    )
    add_export_tool(server, desk)
    add_files_tools(server, desk)
    async with Client(server) as client:
        yield FilesClient(client, folders)


async def test_the_notebook_is_a_file_of_the_session(files: FilesClient) -> None:
    exported = await files.call("export_session")
    assert (exported.data["path"], exported.data["cells"]) == ("exports/s.ipynb", len(CELLS))
    (link,) = exported.more
    assert isinstance(link, ResourceLink)
    assert link.mime_type == "application/x-ipynb+json"
    (content,) = await files.client.read_resource(str(link.uri))
    assert isinstance(content, TextResourceContents)
    printed, value = nbformat.reads(content.text, as_version=4)["cells"][1]["outputs"]
    assert (printed["text"], value["data"]["text/plain"]) == ("printed 20\n", "21")


async def test_the_script_runs_in_ipython_and_skips_what_failed(files: FilesClient, workspace: Workspace) -> None:
    exported = await files.get("export_session", format="script")
    assert exported["path"] == "exports/s.py"
    assert "# This cell raised ZeroDivisionError:\n#     1/0\n" in exported["content"]
    assert "words = get_ipython().getoutput('echo one two')" in exported["content"]
    script = workspace.path / "s.ipy"
    script.write_text(f"{exported['content']}\nprint(words, repr(caught.stdout), x)")
    command = [sys.executable, "-m", "IPython", "--no-banner", "--quick", "--colors=NoColor", script]
    home = {"HOME": str(workspace.path), "IPYTHONDIR": str(workspace.path / "ipython"), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=home, cwd=workspace.path)
    assert ended.returncode == 0, ended.stderr
    assert "['one two'] 'inside\\n' 20" in ended.stdout


async def test_the_lock_is_handed_out_and_again_in_its_place(files: FilesClient) -> None:
    for _ in range(2):
        exported = await files.call("export_session", format="lock")
        assert LOCK in exported.data["content"]
        assert "--hash=sha256:4721f391" in exported.text
    assert await files.paths() == ["exports", "exports/s.lock.txt"]


async def test_a_session_that_is_not_there_is_not_exported(files: FilesClient) -> None:
    assert (await files.refused("export_session", "t"))[0] == "not_found"


def test_nbformat_is_not_loaded_before_a_notebook_is_written() -> None:
    program = "import sys, pyexec.sessions.export; print('nbformat' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
