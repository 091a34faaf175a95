"""Notebooks: they run cell by cell, and every output is kept, whatever happens. One environment serves all."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from mcp_types import BlobResourceContents, TextResourceContents

from pyexec.sandbox.programs import NOTEBOOK
from pyexec.sessions.cells import Cell, SessionEnvironment
from pyexec.sessions.notebook_writing import notebook_of
from tests.end_to_end import session_cells
from tests.helpers.commands import Command
from tests.helpers.mcp import Mcp
from tests.helpers.notebooks import outputs_of, write_notebook
from tests.helpers.processes import alive
from tests.helpers.waiting import eventually, with_enough_time

pytestmark = [pytest.mark.needs_uv, pytest.mark.usefixtures("kept_environments")]

SERVER_ENV = {"NO_COLOR": ""}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
HEADER = "# /// script\n# dependencies = ['six<1.17']\n# ///\n"
FOREVER = "import os, time; print(os.getpid(), flush=True)\nwhile True: time.sleep(0.1)"


CELLS = (
    "import neighbour, os, six, subprocess, sys; from IPython.display import Image, display; x = 20",
    "",
    "print(sys.argv, os.getcwd(), neighbour.NAME)",
    "x + 1",
    f"print('a', end='')\ndisplay(Image({PNG!r}, format='png'))",
    "subprocess.run(['echo', 'child'])\n_ = os.system('echo err >&2')",
    "print('\\udcff')\n'\\udead'",
    "# may fail\n1/0",
    "for number in range(40): display(number)",
)


@dataclass(frozen=True)
class Executed:
    """A notebook that was run: where, how it ended, and what was kept of it."""

    path: Path
    result: dict[str, Any]
    outputs: list[str]


async def execute(mcp: Mcp, *cells: str, **arguments: Any) -> dict[str, Any]:
    """Write a notebook, with the header in its first cell, and run it; return the result, good or bad."""
    write_notebook(mcp.directory / "x.ipynb", HEADER + cells[0], *cells[1:])
    given = {"directory": str(mcp.directory), "script_path": "x.ipynb", "wait_seconds": 100, **arguments}
    answer = await mcp.call("run_script_in_dir", **given)
    assert "job_id" in answer.data, answer.text
    return answer.data


async def kept(mcp: Mcp, job_id: str) -> list[str]:
    """Return the outputs in the notebook that a job has kept, cell by cell."""
    (content,) = await mcp.client.read_resource(f"job-file://{job_id}/x.ipynb")
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "application/x-ipynb+json"
    return outputs_of(content.text)


@pytest.fixture(scope="module")
async def executed(own_server: Mcp) -> Executed:
    """A notebook with something of everything, run to its end."""
    folder = own_server.directory / "executed"
    folder.mkdir()
    (folder / "neighbour.py").write_text("NAME = 'next door'\n")
    mcp = replace(own_server, directory=folder)
    result = await execute(mcp, *CELLS, args=["-a", "'\" \\"])
    return Executed(folder / "x.ipynb", result, await kept(mcp, result["job_id"]))


@pytest.fixture(scope="module")
def of_a_session() -> Sequence[Cell]:
    return session_cells.ran(HEADER + session_cells.CELLS[0], *session_cells.CELLS[1:])


@pytest.mark.exhaustive
async def test_an_exported_session_gives_the_same_values(mcp: Mcp, of_a_session: Sequence[Cell]) -> None:
    exported = notebook_of(of_a_session, SessionEnvironment(python_version="3.12.4", lock=""))
    (mcp.directory / "x.ipynb").write_text(exported)
    result = await mcp.get("run_script_in_dir", directory=str(mcp.directory), script_path="x.ipynb", wait_seconds=100)
    assert result["status"] == "completed"
    again = await kept(mcp, result["job_id"])
    assert again == outputs_of(exported)
    assert again[1:] == [
        "printed 20\n21",
        "<b>bold</b>",
        "'one two'",
        "",
        "'inside\\n'",
        "ZeroDivisionError: division by zero",
        "'awaited'",
        "10",
        "2432902008176640000",
    ]


async def test_cells_share_their_state_and_run_as_a_script_would(mcp: Mcp, executed: Executed) -> None:
    path, result = executed.path, executed.result
    printed = f"{[str(path), '-a', chr(39) + chr(34) + ' ' + chr(92)]} {path.parent} next door\n"
    assert (result["status"], result["stdout"].startswith(f"{printed}21\n")) == ("completed", True)
    assert executed.outputs[:4] == ["", "", printed, "21"]
    assert {one.partition("==")[0] for one in result["resolved_dependencies"]} >= {"six", "nbclient", "ipykernel"}
    assert (await mcp.job(result["job_id"]))["kind"] == "notebook"


def test_the_users_own_file_stays_as_it_is_and_the_result_names_the_executed_one(executed: Executed) -> None:
    assert outputs_of(executed.path.read_text()) == ["from another time\n"] * len(CELLS)
    notes = executed.result["notes"]
    assert notes == [f"With its outputs it is kept as job-file://{executed.result['job_id']}/x.ipynb."]


def test_how_far_it_is_is_told_before_each_cell(executed: Executed) -> None:
    told = [line for line in executed.result["stderr"].splitlines() if line.startswith("::progress")]
    assert told == [*(f"::progress {number}/8 cell {number + 1} of 8" for number in range(8)), "::progress 8/8 done"]


async def test_pictures_are_files_that_the_text_names(mcp: Mcp, executed: Executed) -> None:
    uri = f"job-file://{executed.result['job_id']}/cell-4-1.png"
    assert f"\na\n<IPython.core.display.Image object>\n[image/png: {uri}]\n" in executed.result["stdout"]
    (content,) = await mcp.client.read_resource(uri)
    assert isinstance(content, BlobResourceContents)
    assert (content.mime_type, base64.b64decode(content.blob)) == ("image/png", PNG)


def test_what_children_write_past_python_is_kept_once(executed: Executed) -> None:
    assert (executed.result["stdout"].count("child\n"), executed.result["stderr"].count("err\n")) == (1, 1)
    assert executed.outputs[5].count("child\n") == 1


@pytest.mark.case("B047")
def test_lone_surrogates_hold_nothing_up(executed: Executed) -> None:
    assert "udead'\n" in executed.result["stdout"]
    assert "udead" in executed.outputs[6]


def test_a_cell_that_may_fail_is_told_and_the_next_one_runs(executed: Executed) -> None:
    assert "Cell 7 of 8 failed.\n" in executed.result["stderr"]
    assert executed.outputs[7] == "ZeroDivisionError: division by zero"
    assert executed.outputs[8] == "".join(str(number) for number in range(40))


async def test_a_failing_cell_is_told_with_its_number_and_lines_and_the_rest_is_not_run(mcp: Mcp) -> None:
    cells = ("print('one')", "def f(x):\n    return 1 / x  # here\nprint('two')\nf(0)", "print('three')")
    result = await execute(mcp, *cells)
    assert (result["exit_code"], result["error"]) == (1, "ZeroDivisionError: division by zero")
    assert result["stdout"] == "one\ntwo\n"
    assert "\nCell 2 of 3 failed.\nTraceback (most recent call last):\n  Cell In[2], line 4\n" in result["stderr"]
    assert "return 1 / x  # here" in result["stderr"]
    assert "\x1b" not in result["stderr"]
    assert await kept(mcp, result["job_id"]) == ["one\n", "two\nZeroDivisionError: division by zero", ""]


async def test_a_time_out_keeps_what_was_put_out_and_ends_the_kernel(mcp: Mcp) -> None:
    result, _seconds = await with_enough_time(
        lambda seconds: execute(mcp, "print('before')", FOREVER, timeout_seconds=seconds),
        lambda result: result["stdout"].count("\n") > 1,
        times=4,
    )
    assert (result["status"], result["stdout"].startswith("before\n")) == ("timed_out", True)
    before, pid, *_rest = await kept(mcp, result["job_id"])
    assert (before, pid.split()[0]) == ("before\n", result["stdout"].split()[1])
    assert not alive(int(pid.split()[0]))


@pytest.mark.parametrize("tool", ["py_cancel_job", "kill_job"])
async def test_a_cancelled_notebook_keeps_what_was_put_out_and_ends_the_kernel(mcp: Mcp, tool: str) -> None:
    job_id = (await execute(mcp, "print('before')", f"print('inside')\n{FOREVER}", async_mode=True))["job_id"]
    await mcp.printed(job_id, "inside\n")

    async def saved() -> bool:
        return "inside\n" in (await kept(mcp, job_id))[1]

    if tool == "kill_job":  # It gives nobody a last word.
        await eventually(saved, what="saving while it runs")
    await mcp.get(tool, job_id=job_id)
    assert (await mcp.finished(job_id))["state"] == "cancelled"
    assert await saved()
    assert (await kept(mcp, job_id))[0] == "before\n"


@pytest.mark.exhaustive
async def test_the_signal_that_ended_the_kernel_is_that_of_the_run(mcp: Mcp) -> None:
    result = await execute(mcp, "print('before')", "import os; os.kill(os.getpid(), 9)")
    assert (result["status"], result["signal"], result["exit_code"]) == ("failed", "SIGKILL", 137)
    assert "Cell 2 of 2: the notebook's kernel died." in result["stderr"]
    assert (await kept(mcp, result["job_id"]))[0] == "before\n"


def test_the_command_line_says_where_the_notebook_is_and_exits_as_a_cell_says(mcp: Mcp) -> None:
    write_notebook(mcp.directory / "x.ipynb", f"{HEADER}print(1)", "import sys; sys.exit(7)", "print('on')")
    ran = Command(mcp.home, mcp.directory)("run", "x.ipynb")
    made = Path(ran.stderr.rpartition("pyexec: made ")[2].strip())
    printed, exited, not_run = outputs_of(made.read_text())
    assert (ran.status, ran.stdout, printed, not_run) == (7, "1\n", "1\n", "")
    assert exited.startswith("SystemExit: 7")


async def test_a_notebook_written_by_hand_may_leave_out_what_says_nothing(mcp: Mcp) -> None:
    cells = [{"cell_type": "code", "source": [HEADER, "print(1)\n", "2"]}, {"cell_type": "markdown", "source": "# x"}]
    (mcp.directory / "x.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    arguments = {"directory": str(mcp.directory), "script_path": "x.ipynb", "wait_seconds": 100}
    assert (await mcp.get("run_script_in_dir", **arguments))["stdout"] == "1\n2\n"


def test_a_python_without_nbclient_is_told_what_is_missing(tmp_path: Path) -> None:
    path = write_notebook(tmp_path / "x.ipynb", "1")
    env = {**os.environ, "PYEXEC_ARTIFACTS": str(tmp_path)}
    command = [sys.executable, "-I", "-S", NOTEBOOK, path]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("ModuleNotFoundError: No module named 'nbclient'\n")
    assert "needs the packages nbclient and ipykernel" in done.stderr


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ("{", {}, "is not a notebook: it is no valid JSON"),
        ('{"nbformat": 3, "worksheets": []}', {}, "a notebook of format 3"),
        ('{"nbformat": 4, "metadata": {"kernelspec": {"language": "R"}}, "cells": []}', {}, "a notebook for 'R'"),
        ('{"nbformat": 4, "metadata": {}, "cells": []}', {"stdin": "x"}, "the cells of a notebook cannot read any"),
    ],
)
async def test_what_cannot_be_run_is_refused_before_anything_starts(
    mcp: Mcp, content: str, arguments: dict[str, Any], words: str
) -> None:
    (mcp.directory / "x.ipynb").write_text(content)
    before = await mcp.total_jobs()
    told = await mcp.refused("run_script_in_dir", directory=str(mcp.directory), script_path="x.ipynb", **arguments)
    assert words in told["error"]
    assert (told["error_code"], await mcp.total_jobs()) == ("invalid_argument", before)
