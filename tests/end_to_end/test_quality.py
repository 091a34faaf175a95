"""Formatting and analysing code as a client sees it, with the real tools."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.mcp import Mcp

pytestmark = pytest.mark.needs_uv

SERVER_ENV = {"PYEXEC_WAIT_SECONDS": "150"}
UGLY = "import os\nimport subprocess\nx=1\ndef f( a ):\n  y = subprocess.call('ls', shell=True)\n  return a == None\n"
PRETTY = """\
import os
import subprocess

x = 1


def f(a):
    y = subprocess.call("ls", shell=True)
    return a == None
"""
BROKEN = "x = (\n"


def write(path: Path, text: str | bytes, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def rules(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (row.get("file"), row.get("line"), row.get("column"), row["severity"], row["tool"], row["rule"])
        for row in found["findings"]
    ]


# -- formatting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formatter", ["ruff", "black"])
async def test_a_source_comes_back_formatted_with_the_difference_and_leaves_no_job(mcp: Mcp, formatter: str) -> None:
    answer = await mcp.call("format_code", source=UGLY, formatter=formatter)
    assert {name: answer.data[name] for name in ("formatter", "changed", "written", "formatted")} == {
        "formatter": formatter,
        "changed": True,
        "written": False,
        "formatted": PRETTY,
    }
    assert answer.data["diff"].startswith("--- a/source.py\n+++ b/source.py\n@@ -1,6 +1,9 @@\n import os\n")
    assert PRETTY in answer.text
    again = await mcp.get("format_code", source=PRETTY, formatter=formatter)
    assert (again["changed"], again["formatted"], again["diff"]) == (False, PRETTY, "")
    assert await mcp.total_jobs() == 0
    assert list((mcp.home / "executions").iterdir()) == []


@pytest.mark.parametrize(
    ("show", "there"), [("all", {"formatted", "diff"}), ("code", {"formatted"}), ("diff", {"diff"}), ("check", set())]
)
async def test_an_answer_carries_what_is_asked_for(mcp: Mcp, show: str, there: set[str]) -> None:
    answer = await mcp.call("format_code", source=UGLY, show=show)
    assert answer.data.keys() & {"formatted", "diff"} == there
    assert answer.data["changed"] is True


async def test_the_settings_of_a_project_count_for_its_files_and_for_nothing_else(mcp: Mcp) -> None:
    write(
        mcp.directory / "pyproject.toml", "[tool.ruff.format]\nquote-style = 'single'\n[tool.black]\nline-length = 20\n"
    )
    write(mcp.directory / "src" / "code.py", "values = ['one', 'two']\n")
    given = {"path": "src/code.py", "directory": str(mcp.directory)}
    by_ruff = await mcp.get("format_code", **given)
    assert (by_ruff["changed"], by_ruff["path"]) == (False, "src/code.py")
    by_black = await mcp.get("format_code", **given, formatter="black")
    assert by_black["formatted"] == 'values = [\n    "one",\n    "two",\n]\n'
    assert "--- a/src/code.py" in by_black["diff"]
    alone = await mcp.get("format_code", source="values = ['one', 'two']\n", directory=str(mcp.directory))
    assert alone["formatted"] == 'values = ["one", "two"]\n'
    short = await mcp.get("format_code", source="f(aaaa, bbbb)\n", line_length=10)
    assert short["formatted"].startswith("f(\n")


@pytest.mark.parametrize("formatter", ["ruff", "black"])
async def test_a_file_is_replaced_with_its_mode_its_line_ends_and_its_mark_kept(mcp: Mcp, formatter: str) -> None:
    file = write(mcp.directory / "real" / "code.py", b"\xef\xbb\xbfx=1\r\ny=2\r\n", 0o755)
    (mcp.directory / "link.py").symlink_to(file)
    given = {"path": "link.py", "directory": str(mcp.directory), "formatter": formatter}
    assert (await mcp.get("format_code", **given))["written"] is False
    assert file.read_bytes() == b"\xef\xbb\xbfx=1\r\ny=2\r\n"
    answer = await mcp.call("format_code", **given, write=True)
    assert (answer.data["written"], answer.data["path"]) == (True, "link.py")
    assert file.read_bytes() == b"\xef\xbb\xbfx = 1\r\ny = 2\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    assert (mcp.directory / "link.py").is_symlink()
    assert [path.name for path in file.parent.iterdir()] == ["code.py"]
    before = file.stat().st_mtime_ns
    assert (await mcp.get("format_code", **given, write=True))["written"] is False
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize("formatter", ["ruff", "black"])
async def test_a_source_that_cannot_be_parsed_is_told_by_its_place_and_nothing_is_written(
    mcp: Mcp, formatter: str
) -> None:
    file = write(mcp.directory / "code.py", BROKEN)
    answer = await mcp.call("format_code", path=str(file), formatter=formatter, write=True)
    assert answer.is_error
    assert "error_code" not in answer.data
    assert answer.data["error"].startswith(f"It cannot be parsed at line {answer.data['line']}, column ")
    assert answer.data["line"] in (1, 2)
    assert (answer.data["changed"], answer.data["written"], file.read_text()) == (False, False, BROKEN)


async def test_bytes_that_are_no_text_of_python_are_said_by_the_tool_that_minds(mcp: Mcp) -> None:
    latin = write(mcp.directory / "latin.py", b"# -*- coding: latin-1 -*-\nx='\xe9'\n")
    refused = await mcp.refused("format_code", path=str(latin))
    assert refused["error_code"] == "tool_failed"
    assert "UTF-8" in refused["error"]
    assert (await mcp.get("format_code", path=str(latin), formatter="black", write=True))["written"] is True
    assert latin.read_bytes() == b'# -*- coding: latin-1 -*-\nx = "\xe9"\n'


# -- analysing ------------------------------------------------------------------------------------------------------


@pytest.mark.case("B182")
async def test_findings_have_their_place_rule_severity_and_fix_from_the_tools_themselves(mcp: Mcp) -> None:
    answer = await mcp.call("analyze_code", source=UGLY, tools='["bandit", "ruff"]')
    found = answer.data
    assert rules(found) == [
        (None, 1, 1, "warning", "ruff", "I001"),
        (None, 1, 8, "warning", "ruff", "F401"),
        (None, 2, 1, "info", "bandit", "B404"),
        (None, 5, 3, "warning", "ruff", "F841"),
        (None, 5, 7, "info", "bandit", "B602"),
        (None, 5, 7, "info", "bandit", "B607"),
    ]
    unused, assigned = found["findings"][1], found["findings"][3]
    assert unused["message"] == "`os` imported but unused"
    assert unused["url"].startswith("https://docs.astral.sh/ruff/rules/")
    edit = {"line": 1, "column": 1, "end_line": 2, "end_column": 1, "text": ""}
    assert unused["fix"] == {"message": "Remove unused import: `os`", "safe": True, "edits": [edit]}
    assert assigned["fix"]["safe"] is False
    assert "fix" not in found["findings"][2]
    assert (found["total"], found["truncated"]) == (6, False)
    assert found["severities"] == {"error": 0, "warning": 3, "info": 3}
    assert found["tools"] == {"ruff": 3, "bandit": 3}
    assert "- 1:8 warning F401 (ruff): `os` imported but unused [fix: Remove unused import: `os`]" in answer.text
    assert await mcp.total_jobs() == 0


@pytest.mark.exhaustive
async def test_a_folder_is_analysed_by_its_own_settings_and_what_is_installed_in_it_is_left_out(mcp: Mcp) -> None:
    write(
        mcp.directory / "pyproject.toml",
        "[tool.ruff.lint]\nselect = ['F']\nignore = ['F841']\n[tool.bandit]\nskips = ['B404', 'B607']\n",
    )
    write(mcp.directory / "src" / "code.py", UGLY)
    write(mcp.directory / "src" / "broken.py", BROKEN)
    write(mcp.directory / ".venv" / "lib" / "installed.py", UGLY)
    found = await mcp.get("analyze_code", path=".", directory=str(mcp.directory))
    assert rules(found) == [
        ("src/broken.py", 2, 1, "error", "ruff", "syntax-error"),
        ("src/code.py", 1, 8, "warning", "ruff", "F401"),
        ("src/code.py", 5, 7, "info", "bandit", "B602"),
    ]
    one = await mcp.get("analyze_code", path="code.py", directory=str(mcp.directory / "src"))
    assert rules(one) == [
        ("code.py", 1, 8, "warning", "ruff", "F401"),
        ("code.py", 5, 7, "info", "bandit", "B602"),
    ]
    few = await mcp.get("analyze_code", path=str(mcp.directory / "src"), limit=1)
    assert rules(few) == [(str(mcp.directory / "src" / "broken.py"), 2, 1, "error", "ruff", "syntax-error")]
    assert (few["total"], few["truncated"], few["severities"]["info"]) == (3, True, 1)
    assert sorted(path.name for path in mcp.directory.iterdir()) == [".venv", "pyproject.toml", "src"]


@pytest.mark.exhaustive
async def test_what_can_be_fixed_safely_is_fixed_when_asked(mcp: Mcp) -> None:
    source = await mcp.get("analyze_code", source=UGLY, tools=["ruff"], fix=True)
    assert (source["fixed"], source["total"]) == (2, 1)
    assert source["fixed_source"] == UGLY.removeprefix("import os\n").replace("subprocess\nx", "subprocess\n\nx")
    file = write(mcp.directory / "pkg" / "code.py", b"import os\r\nprint('x')\r\n", 0o640)
    one = await mcp.get("analyze_code", path=str(file), fix=True)
    assert (one["fixed"], one["total"], "fixed_source" in one) == (2, 0, False)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"print('x')\r\n", 0o640)
    file.write_text("import os\nprint('x')\n")
    folder = await mcp.get("analyze_code", path=str(file.parent), fix=True)
    assert (folder["fixed"], folder["total"], file.read_text()) == (2, 0, "print('x')\n")


async def test_a_syntax_error_is_a_finding_of_whichever_tool_is_asked(mcp: Mcp) -> None:
    both = await mcp.get("analyze_code", source=BROKEN)
    assert rules(both) == [(None, 2, 1, "error", "ruff", "syntax-error")]
    alone = await mcp.get("analyze_code", source=BROKEN, tools=["bandit"])
    assert rules(alone) == [(None, None, None, "error", "bandit", "syntax-error")]


@pytest.mark.exhaustive
async def test_the_type_checker_looks_when_it_is_asked_for(mcp: Mcp) -> None:
    given = {"tools": ["basedpyright"]}
    source = await mcp.get("analyze_code", source="import requests\nx: int = 'a'\ndef f(a): return a\n", **given)
    assert rules(source) == [(None, 2, 10, "error", "basedpyright", "reportAssignmentType")]
    write(mcp.directory / "pyrightconfig.json", '{"reportAssignmentType": "none", "reportIndexIssue": "warning"}')
    write(mcp.directory / "helper.py", "VALUE = 1\n")
    write(mcp.directory / "code.py", "import helper\nx: int = 'a'\nhelper.VALUE[0]\n")
    project = await mcp.get("analyze_code", path="code.py", directory=str(mcp.directory), **given)
    assert ("code.py", 3, 1, "warning", "basedpyright", "reportIndexIssue") in rules(project)
    assert not [row for row in project["findings"] if row["rule"] in ("reportAssignmentType", "reportMissingImports")]


async def test_what_lies_beside_the_code_is_never_taken_for_a_part_of_the_tool(mcp: Mcp) -> None:
    for name in ("ruff", "bandit", "black", "runpy", "json", "ast", "sitecustomize"):
        write(mcp.directory / f"{name}.py", "raise SystemExit('the module of the user was imported')\n")
    file = write(mcp.directory / "code.py", UGLY)
    assert (await mcp.get("analyze_code", path=str(file)))["total"] == 6
    assert (await mcp.get("format_code", path=str(file), formatter="black"))["formatted"] == PRETTY


@pytest.mark.parametrize(
    ("tool", "given", "code", "said"),
    [
        ("format_code", {}, "invalid_argument", "Neither source nor path was given."),
        ("format_code", {"source": "", "path": "x"}, "invalid_argument", "Both source and path were given."),
        ("format_code", {"path": "none.py"}, "not_found", "path /"),
        ("format_code", {"path": "."}, "invalid_argument", "is a folder; one file at a time"),
        (
            "format_code",
            {"source": "", "formatter": "yapf"},
            "invalid_argument",
            "'yapf'; it must be one of ruff, black",
        ),
        ("format_code", {"source": "", "line_length": 0}, "invalid_argument", "line_length is 0; it must be between 1"),
        ("format_code", {"source": "", "show": "x"}, "invalid_argument", "one of all, code, diff, check"),
        ("format_code", {"source": "", "write": True}, "invalid_argument", "write=true needs a path"),
        ("analyze_code", {"source": "", "tools": ["x"]}, "invalid_argument", "'x'; they must be among ruff, bandit"),
        ("analyze_code", {"source": "", "tools": []}, "invalid_argument", "tools has nothing"),
        ("analyze_code", {"source": "", "limit": 0}, "invalid_argument", "limit is 0; it must be between 1"),
        ("analyze_code", {"source": "", "tools": ["bandit"], "fix": True}, "invalid_argument", "fix=true needs ruff"),
        ("analyze_code", {"source": "", "directory": "/not/there"}, "not_found", "/not/there"),
    ],
)
async def test_wrong_input_is_refused_with_what_is_allowed(
    mcp: Mcp, tool: str, given: dict[str, object], code: str, said: str
) -> None:
    refused = await mcp.refused(tool, **{"directory": str(mcp.directory), **given})
    assert refused["error_code"] == code
    assert said in refused["error"]


async def test_settings_that_a_tool_does_not_like_are_said_in_its_words(mcp: Mcp) -> None:
    write(mcp.directory / "ruff.toml", "line-length = 'long'\n")
    file = write(mcp.directory / "code.py", "x = 1\n")
    refused = await mcp.refused("format_code", path=str(file))
    assert refused["error_code"] == "tool_failed"
    assert "line-length" in refused["error"]
    # The other tool has done its part all the same.
    found = await mcp.get("analyze_code", path=str(file))
    assert found["total"] == 0
    assert any("ruff failed" in note for note in found["notes"])


async def test_a_file_that_may_not_be_read_is_refused(mcp: Mcp) -> None:
    os.mkfifo(mcp.directory / "pipe.py")
    refused = await mcp.refused("format_code", path="pipe.py", directory=str(mcp.directory))
    assert "neither a file nor a folder" in refused["error"]
