"""A session's cells as a notebook and as a script."""

import ast
import json
from typing import Any

import nbformat
import pytest

from pyexec.domain.turns import Display, Failure, LateText, Part, Turn
from pyexec.sessions.cells import Cell, SessionEnvironment
from pyexec.sessions.notebook_writing import notebook_of
from pyexec.sessions.script_writing import LONGEST_READ, lock_of, script_of

LOCK = """\
# comment
numpy==2.3.1 ; python_full_version >= '3.12' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
six==1.16.0 \\
    --hash=sha256:cc
mine @ file:///somewhere/mine
-e ./project
"""
ENVIRONMENT = SessionEnvironment(python_version="3.12.4", lock=LOCK)
PNG = b"\x89PNG\r\n\x1a\n..."


def cell(code: str, **changes: Any) -> Cell:
    given: dict[str, Any] = {"execution_count": 1, "turn": Turn(status="ok", exit_code=0), **changes}
    return Cell(code=code, **given)


def outputs(*cells: Cell) -> list[dict[str, Any]]:
    return json.loads(notebook_of(cells, ENVIRONMENT))["cells"][0]["outputs"]


def script(*cells: Cell) -> str:
    text = script_of(cells, ENVIRONMENT, "s")
    ast.parse(text)
    return text.partition("in the order in which they ran.\n")[2]


def test_what_was_printed_and_shown_stands_in_its_order() -> None:
    picture = Part(media_type="image/png", data=PNG)
    shown = Display(number=1, kind="figure", parts=(picture,), stdout_at=len("ä\n".encode()))
    late = Display(number=0, kind="html", parts=(Part(media_type="text/html", text="<b>"),), late=True)
    turn = Turn(status="ok", value="42", displays=(late, shown), late=(LateText(stream="stdout", text="late"),))
    found = outputs(cell("x", stdout="ä\nb\n", stderr="e", turn=turn, execution_count=7))
    assert [(one["output_type"], one.get("name")) for one in found] == [
        ("stream", "stdout"),
        ("display_data", None),
        ("stream", "stdout"),
        ("stream", "stderr"),
        ("display_data", None),
        ("stream", "stdout"),
        ("execute_result", None),
    ]
    assert (found[0]["text"], found[2]["text"]) == (["ä\n"], ["b\n"])
    assert found[1]["data"]["image/png"].startswith("iVBOR")
    assert (found[6]["data"]["text/plain"], found[6]["execution_count"]) == (["42"], 7)


def test_a_failure_is_an_error_output_and_its_traceback_is_not_repeated_on_stderr() -> None:
    failure = Failure(type="ValueError", message="no", traceback="Traceback\nValueError: no\n")
    turn = Turn(status="error", exit_code=1, failure=failure, told_bytes=len(failure.traceback))
    (said, error) = outputs(cell("x", stderr=f"before\n{failure.traceback}", turn=turn))
    assert (said["name"], said["text"]) == ("stderr", ["before\n"])
    assert (error["ename"], error["evalue"], error["traceback"][0]) == ("ValueError", "no", "Traceback")


def test_the_forms_of_displays_are_those_that_notebooks_have() -> None:
    parts = (
        Part(media_type="application/vnd.plotly.v1+json", text='{"data": [NaN]}'),
        Part(media_type="application/json", file="long.json", size=3),
        Part(media_type="image/svg+xml", file="a.svg"),
        Part(media_type="application/geo+json", text="{broken"),
        Part(media_type="image/jpeg", file="gone.jpg", size=12),
    )
    table = {"columns": [{"name": "<a>", "type": "int"}], "rows": [[1], [None]], "shape": [2, 1]}
    displays = tuple(Display(number=n, kind="k", parts=(part,)) for n, part in enumerate(parts, start=1))
    displays += (Display(number=9, kind="table", parts=(), table=table), Display(number=10, kind="odd", parts=()))
    files = {"long.json": b"[1]", "a.svg": b"<svg/>"}
    data = [one["data"] for one in outputs(cell("x", turn=Turn(status="ok", displays=displays), files=files))]
    assert data[0] == {"application/vnd.plotly.v1+json": {"data": ["NaN"]}}
    assert data[1] == {"application/json": [1]}
    assert data[2] == {"image/svg+xml": ["<svg/>"]}
    assert data[3] == {"text/plain": ["{broken"]}
    assert data[4] == {"text/plain": ["[image/jpeg, 12 bytes, which are not kept]"]}
    assert "<th>&lt;a&gt;</th>" in "".join(data[5]["text/html"])
    assert data[6] == {"text/plain": ["[odd]"]}


def test_a_notebook_is_valid_and_marks_what_may_fail_or_would_not_end() -> None:
    cells = [
        cell("%time 1\nx\udcff"),
        cell("1/0", turn=Turn(status="error", failure=Failure(type="E", message="", traceback=""))),
        cell("while True: pass", turn=None, execution_count=None),
        cell("while True: pass", turn=Turn(status="interrupted")),
    ]
    notebook = nbformat.reads(notebook_of(cells, ENVIRONMENT), as_version=4)
    nbformat.validate(notebook)
    assert [one["metadata"].get("tags") for one in notebook["cells"]] == [
        None,
        ["raises-exception"],
        ["skip-execution"],
        ["skip-execution"],
    ]
    assert notebook["cells"][0]["source"] == "%time 1\nx\\udcff"
    assert notebook["metadata"]["language_info"]["version"] == "3.12.4"
    assert len({one["id"] for one in notebook["cells"]}) == 4


def test_a_script_holds_the_cells_behind_marks() -> None:
    assert script(cell("x = 1\n", execution_count=1), cell("print(x)", execution_count=2)) == (
        "\n# %% [1]\nx = 1\n\n# %% [2]\nprint(x)\n"
    )


def test_the_head_of_a_script_says_what_it_needs() -> None:
    head = script_of([], ENVIRONMENT, "s").partition("# The cells")[0]
    assert head == (
        "# /// script\n"
        '# requires-python = "==3.12.*"\n'
        "# dependencies = [\n"
        "#   \"numpy==2.3.1 ; python_full_version >= '3.12'\",\n"
        '#   "six==1.16.0",\n'
        "# ]\n"
        "# ///\n"
    )


@pytest.mark.parametrize("code", ["%time x", "!ls", "x = await y", "async with a: pass", "%%bash\nls"])
def test_what_only_ipython_runs_is_said_at_the_head(code: str) -> None:
    text = script_of([cell("x = 1"), cell(code)], ENVIRONMENT, "s")
    ast.parse(text)
    assert "run it with `ipython`" in text.partition("# %%")[0]
    assert "run it with" not in script_of([cell("x = 1")], ENVIRONMENT, "s")


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (Turn(status="error", failure=Failure(type="KeyError", message="", traceback="")), "raised KeyError"),
        (None, "did not end"),
        (Turn(), "did not end"),
        (Turn(status="interrupted"), "was interrupted"),
        (Turn(status="exited", exit_code=3), "left the interpreter"),
        (Turn(status="refused"), "was not run"),
    ],
    ids=range(6),
)
def test_a_cell_that_did_not_end_well_is_a_comment(turn: Turn | None, said: str) -> None:
    lines = script(cell("x = 1\r\ny = 2", turn=turn)).strip().split("\n")
    assert lines == ["# %% [1]", f"# This cell {said}:", "#     x = 1", "#     y = 2"]


@pytest.mark.parametrize(
    "code",
    [
        "x = (\nimport os",
        "return 1",
        "x = 1 #\0",
        "-" * LONGEST_READ + "1",
        "-" * 90_000 + "1",
        "(" * 9999 + ")" * 9999,
    ],
    ids=["syntax", "return", "null", "long", "deep", "brackets"],
)
def test_a_cell_that_is_no_python_is_a_comment(code: str) -> None:
    lines = script(cell(code)).strip().split("\n")
    assert lines[1] == "# This cell cannot be written as Python:"
    assert all(line.startswith("#") for line in lines)


def test_code_cannot_break_out_of_a_comment() -> None:
    lines = script(cell("a\rimport os\x0cb\u2028c", turn=None)).strip().split("\n")
    assert lines[2:] == ["#     a", "#     import os\x0cb\u2028c"]


def test_a_lock_is_handed_out_with_its_hashes() -> None:
    text = lock_of(ENVIRONMENT, "s")
    assert "--hash=sha256:cc" in text
    assert "for Python 3.12.4" in text.partition("\n")[0]
