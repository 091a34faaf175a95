"""Every wrong input is refused before anything is started, with a stable code and a sentence that helps."""

import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.mcp import Mcp, connect

INLINE: dict[str, Any] = {"directory": "/tmp", "script_content": "print('ran')", "use_uv": False}
FILE: dict[str, Any] = {"directory": "/tmp", "use_uv": False}
NEEDING: dict[str, Any] = {"script_content": "print('ran')"}
RUN, WITH = "run_script_in_dir", "run_script_with_dependencies"

Words = tuple[str, ...]

REFUSED: dict[str, tuple[str, dict[str, Any], str, Words]] = {
    # What does not exist.
    "directory": (RUN, {**INLINE, "directory": "/not/there"}, "not_found", ("directory /not/there", "does not exist")),
    "directory is a file": (RUN, {**INLINE, "directory": sys.executable}, "invalid_argument", ("not a directory",)),
    "empty directory": (RUN, {**INLINE, "directory": ""}, "invalid_argument", ("directory", "empty")),
    "script": (RUN, {**FILE, "script_path": "gone.py"}, "not_found", ("script_path /tmp/gone.py", "/tmp.")),
    "script is a folder": (
        RUN,
        {**FILE, "script_path": "/tmp"},
        "invalid_argument",
        ("script_path /tmp is a folder without a __main__.py", "Name a file in it"),
    ),
    "env file": (RUN, {**INLINE, "env_file": "gone.env"}, "not_found", ("env_file /tmp/gone.env", "does not exist")),
    "env file is a folder": (RUN, {**INLINE, "env_file": "/tmp"}, "invalid_argument", ("env_file /tmp", "not a file")),
    "script of dependencies": (WITH, {"script_path": "/gone.py"}, "not_found", ("script_path /gone.py",)),
    # One source, neither two nor none.
    "both": (RUN, {**INLINE, "script_path": "a.py"}, "invalid_argument", ("script_path and script_content",)),
    "neither": (RUN, FILE, "invalid_argument", ("nothing to run", "exactly one")),
    "both with dependencies": (WITH, {**NEEDING, "script_path": "a.py"}, "invalid_argument", ("given together",)),
    "neither with dependencies": (WITH, {}, "invalid_argument", ("nothing to run",)),
    "module and code": (RUN, {**INLINE, "module": "this"}, "invalid_argument", ("script_content and module",)),
    "module is a file": (RUN, {**FILE, "module": "a/b.py"}, "invalid_argument", ("module is 'a/b.py'", "http.server")),
    "module with arguments": (WITH, {"module": "ruff check"}, "invalid_argument", ("module is 'ruff check'", "args")),
    # Numbers outside of what is allowed.
    "time-out below": (
        RUN,
        {**INLINE, "timeout_seconds": -1},
        "invalid_argument",
        ("timeout_seconds is -1", "0 (none)"),
    ),
    "time-out above": (RUN, {**INLINE, "timeout_seconds": 10**9}, "invalid_argument", ("1e+09", "2.592e+06")),
    "time-out nan": (RUN, {**INLINE, "timeout_seconds": "nan"}, "invalid_argument", ("timeout_seconds", "nan")),
    "time-out infinite": (RUN, {**INLINE, "timeout_seconds": "inf"}, "invalid_argument", ("timeout_seconds", "inf")),
    "time-out text": (RUN, {**INLINE, "timeout_seconds": "soon"}, "invalid_argument", ("timeout_seconds", "'soon'")),
    "time-out list": (RUN, {**INLINE, "timeout_seconds": [1]}, "invalid_argument", ("timeout_seconds", "number")),
    "wait below": (RUN, {**INLINE, "wait_seconds": -0.5}, "invalid_argument", ("wait_seconds", "-0.5", "0")),
    "output below": (RUN, {**INLINE, "max_output_bytes": 0}, "invalid_argument", ("max_output_bytes is 0", "4194304")),
    "output above": (RUN, {**INLINE, "max_output_bytes": 10**9}, "invalid_argument", ("1000000000", "4194304")),
    "output text": (RUN, {**INLINE, "max_output_bytes": "1 MB"}, "invalid_argument", ("max_output_bytes", "'1 MB'")),
    # Values of another type, or none that a process can have.
    "args text": (RUN, {**INLINE, "args": "--verbose"}, "invalid_argument", ("args", "list", "'--verbose'")),
    "args null": (RUN, {**INLINE, "args": [None]}, "invalid_argument", ("args.0", "string")),
    "args nul": (RUN, {**INLINE, "args": ["a\0b"]}, "invalid_argument", ("args", "NUL")),
    "args long": (RUN, {**INLINE, "args": ["x" * 200_000]}, "invalid_argument", ("200001", "131072")),
    "variables list": (RUN, {**INLINE, "env_vars": ["A=1"]}, "invalid_argument", ("env_vars", "dictionary")),
    "variable name": (RUN, {**INLINE, "env_vars": {"A=B": "1"}}, "invalid_argument", ("'A=B'", "env_vars")),
    "variable nul": (RUN, {**INLINE, "env_vars": {"A": "1\0"}}, "invalid_argument", ("'A'", "NUL")),
    "uv text": (RUN, {**INLINE, "use_uv": "perhaps"}, "invalid_argument", ("use_uv", "bool", "'perhaps'")),
    "source nul": (RUN, {**INLINE, "script_content": "a = '\0'"}, "invalid_argument", ("script_content", "NUL")),
    "label": (RUN, {**INLINE, "job_label": "x" * 201}, "invalid_argument", ("job_label", "201", "200")),
    "request id": (RUN, {**INLINE, "request_id": "x" * 201}, "invalid_argument", ("request_id", "201", "200")),
    "unknown argument": (RUN, {**INLINE, "timeout": 5}, "invalid_argument", ("no argument timeout",)),
    "missing argument": (RUN, {"script_content": "1"}, "invalid_argument", ("directory", "missing")),
    # Versions and packages.
    "version without uv": (RUN, {**INLINE, "python_version": "3.13"}, "invalid_argument", ("use_uv=true",)),
    "version": (WITH, {**NEEDING, "python_version": "latest"}, "invalid_argument", ("'latest'", "3.13")),
    "version of the future": (
        WITH,
        {**NEEDING, "python_version": "3.99"},
        "interpreter_not_found",
        ("3.99", "here are"),
    ),
    "version path": (WITH, {**NEEDING, "python_version": "/no/python"}, "not_found", ("/no/python",)),
    "requirement": (WITH, {**NEEDING, "dependencies": ["not a package!"]}, "invalid_argument", ("'not a package!'",)),
    "requirements text": (WITH, {**NEEDING, "dependencies": "rich"}, "invalid_argument", ("dependencies", "list")),
    # Jobs.
    "output of nothing": ("get_job_output", {"job_id": "nothing"}, "not_found", ("'nothing'", "py_list_jobs")),
    "status of nothing": ("py_job_status", {"job_id": "f" * 32}, "not_found", (f"'{'f' * 32}'",)),
    "cancel of nothing": ("py_cancel_job", {"job_id": "../x"}, "not_found", ("'../x'",)),
    "kill of nothing": ("kill_job", {"job_id": ""}, "not_found", ("''",)),
    "job id missing": ("kill_job", {}, "invalid_argument", ("job_id", "missing")),
    "cursor": ("py_job_status", {"job_id": "x", "cursor": "half?"}, "invalid_argument", ("'half?'", "next_cursor")),
    "cursor of others": ("py_job_status", {"job_id": "x", "cursor": "AAAA"}, "invalid_argument", ("'AAAA'",)),
    "state": ("py_list_jobs", {"status_filter": "done"}, "invalid_argument", ("'done'", "completed", "timed_out")),
    "limit below": ("py_list_jobs", {"limit": 0}, "invalid_argument", ("limit is 0", "500")),
    "limit above": ("py_list_jobs", {"limit": 501}, "invalid_argument", ("limit is 501", "500")),
    "limit text": ("py_list_jobs", {"limit": "all"}, "invalid_argument", ("limit", "'all'")),
    "age": ("py_prune_jobs", {"max_age_hours": -1}, "invalid_argument", ("max_age_hours is -1", "0")),
    "age nan": ("py_prune_jobs", {"max_age_hours": "nan"}, "invalid_argument", ("max_age_hours", "nan")),
}


@pytest.mark.case("B180")
@pytest.mark.parametrize("name", REFUSED)
async def test_it_is_refused_by_code_and_sentence_and_nothing_is_started(mcp: Mcp, name: str) -> None:
    tool, arguments, code, words = REFUSED[name]
    before = await mcp.total_jobs()
    refused = await mcp.refused(tool, **arguments)
    assert refused["error_code"] == code
    for word in words:
        assert word in refused["error"]
    assert refused["error"].endswith(".")
    assert await mcp.total_jobs() == before
    assert len(list((mcp.home / "executions").iterdir())) == before


async def test_an_env_file_with_a_bad_line_names_the_line_and_shows_no_value(mcp: Mcp) -> None:
    (mcp.directory / "bad.env").write_text("GOOD=1\nPASSWORD='hunter2\nOTHER=2\n")
    refused = await mcp.refused(RUN, **{**INLINE, "directory": str(mcp.directory), "env_file": "bad.env"})
    assert refused["error_code"] == "env_file_invalid"
    assert "Line 2" in refused["error"]
    assert "hunter2" not in refused["error"]


async def test_several_faults_are_named_at_once(mcp: Mcp) -> None:
    refused = await mcp.refused(RUN, directory=5, script_content="1", use_uv="perhaps", nonsense=1)
    for name in ("directory", "use_uv", "nonsense"):
        assert name in refused["error"]


@pytest.mark.case("B180")
@pytest.mark.parametrize("seconds", [0, 600, "30", 2_592_000])
async def test_time_outs_that_are_allowed_are_taken_as_they_are(mcp: Mcp, seconds: float | str) -> None:
    result = await mcp.run("print('ran')", timeout_seconds=seconds)
    assert result["stdout"] == "ran\n"
    await mcp.get("py_prune_jobs", max_age_hours=0)


@pytest.mark.exhaustive
async def test_uv_that_is_not_there_is_said_with_what_to_do(state_home: Path) -> None:
    """An environment without uv, on a machine without it: as after an install with `--no-deps`."""
    bare = state_home.parent / "venv"
    venv.create(bare, with_pip=False, symlinks=True)
    (packages,) = bare.glob("lib/python3*/site-packages")
    beside = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "ours.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in beside))
    env = {"PATH": str(state_home.parent / "nothing"), "HOME": str(state_home.parent), "UV": ""}
    command = (bare / "bin" / "python", "-m", "pyexec", "serve")
    async with connect(state_home, command=command, env=env) as mcp:
        for tool, arguments in ((RUN, {**INLINE, "use_uv": True}), (WITH, NEEDING)):
            refused = await mcp.refused(tool, **arguments)
            assert refused["error_code"] == "uv_not_found"
            assert "use_uv=false" in refused["error"]
        assert (await mcp.run("print('ran')"))["stdout"] == "ran\n"
