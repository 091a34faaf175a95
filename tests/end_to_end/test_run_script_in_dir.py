"""`run_script_in_dir`: its arguments and its result."""

import os
import re
import sys

import pytest

from tests.helpers.mcp import Mcp, as_json

SHOW_WHO = "import os; print(os.environ.get('WHO'), os.environ.get('ONLY_FILE'), os.environ.get('ONLY_SERVER'))"


async def test_a_finished_run_has_every_field_with_its_real_type(mcp: Mcp) -> None:
    result = await mcp.run("import sys; print('out'); print('err', file=sys.stderr)")
    told = {name: result.pop(name) for name in ("job_id", "elapsed_seconds", "next_cursor", "python_version_used")}
    assert {name: type(value) for name, value in told.items()} == {
        "job_id": str,
        "elapsed_seconds": float,
        "next_cursor": str,
        "python_version_used": str,
    }
    assert re.fullmatch(r"[0-9a-f]{32}", told["job_id"])
    assert re.fullmatch(r"3\.\d+\.\d+", told["python_version_used"])
    assert result == {
        "status": "completed",
        "stdout": "out\n",
        "stderr": "err\n",
        "exit_code": 0,
        "execution_strategy": "system-python",
        "truncated": False,
        "stdout_bytes": 4,
        "stderr_bytes": 4,
    }


async def test_inline_code_runs_in_the_directory_and_imports_what_lies_there(mcp: Mcp) -> None:
    (mcp.directory / "neighbour.py").write_text("NAME = 'next door'\n")
    result = await mcp.run("import os, neighbour; print(os.getcwd(), neighbour.NAME)")
    assert result["stdout"] == f"{mcp.directory} next door\n"


async def test_a_script_is_found_from_the_directory_or_by_its_absolute_path(mcp: Mcp) -> None:
    folder = mcp.directory / "project"
    folder.mkdir()
    script = folder / "main.py"
    script.write_text("import sys; print(sys.argv)\n")
    for path in ("project/main.py", str(script)):
        result = await mcp.get(
            "run_script_in_dir",
            directory=str(mcp.directory),
            script_path=path,
            args=["--flag", "two words", ""],
            use_uv=False,
        )
        assert result["stdout"].endswith(", '--flag', 'two words', '']\n")


async def test_stdin_is_the_given_text_and_else_empty(mcp: Mcp) -> None:
    source = "import sys; print(repr(sys.stdin.read()))"
    assert (await mcp.run(source))["stdout"] == "''\n"
    assert (await mcp.run(source, stdin="zwölf\nzeilen\0"))["stdout"] == "'zwölf\\nzeilen\\x00'\n"


async def test_variables_of_the_call_win_over_the_env_file_and_that_over_the_servers(mcp: Mcp) -> None:
    (mcp.directory / "some.env").write_text("WHO=file\nONLY_FILE=yes\n")
    assert (await mcp.run(SHOW_WHO))["stdout"] == "server None yes\n"
    assert (await mcp.run(SHOW_WHO, env_file="some.env"))["stdout"] == "file yes yes\n"
    both = await mcp.run(SHOW_WHO, env_file=str(mcp.directory / "some.env"), env_vars={"WHO": "call"})
    assert both["stdout"] == "call yes yes\n"


async def test_the_servers_own_settings_do_not_reach_the_program(mcp: Mcp) -> None:
    result = await mcp.run("import os; print([name for name in os.environ if name.startswith('PYEXEC_')])")
    assert result["stdout"] == "['PYEXEC_EXECUTION_ID']\n"


@pytest.mark.needs_uv
async def test_uv_runs_it_by_default_with_the_version_asked_for(mcp: Mcp) -> None:
    version = ".".join(map(str, sys.version_info[:2]))
    result = await mcp.get(
        "run_script_in_dir",
        directory=str(mcp.directory),
        script_content="import sys; print(sys.version_info[:2])",
        python_version=version,
    )
    assert result["stdout"] == f"{sys.version_info[:2]}\n"
    assert result["execution_strategy"] == "uv-run"
    assert result["python_version_used"].startswith(f"{version}.")


async def test_the_text_is_markdown_or_the_structured_content_as_json(mcp: Mcp) -> None:
    given = {"directory": str(mcp.directory), "script_content": "print('```\\nfenced')", "use_uv": False}
    shown = await mcp.call("run_script_in_dir", **given)
    assert shown.text.startswith("**completed**, exit code 0 in ")
    assert "````\n```\nfenced\n````" in shown.text, "the fence is longer than any inside"
    plain = await mcp.call("run_script_in_dir", **given, markdown_output=False)
    assert as_json(plain) == plain.data
    for tool, arguments in (
        ("get_job_output", {"job_id": plain.data["job_id"]}),
        ("py_job_status", {"job_id": plain.data["job_id"]}),
        ("list_running_jobs", {}),
        ("py_list_jobs", {"limit": 2}),
        ("py_cancel_job", {"job_id": plain.data["job_id"]}),
        ("kill_job", {"job_id": plain.data["job_id"]}),
        ("py_prune_jobs", {"max_age_hours": 24}),
        ("kill_job", {"job_id": "unknown"}),
    ):
        answer = await mcp.call(tool, **arguments, markdown_output=False)
        assert as_json(answer) == answer.data, tool


async def test_a_label_is_shown_with_the_job(mcp: Mcp) -> None:
    result = await mcp.run("pass", job_label="nightly | report")
    assert (await mcp.job(result["job_id"]))["label"] == "nightly | report"
    assert "nightly \\| report" in (await mcp.call("py_list_jobs")).text


async def test_a_long_answer_holds_head_and_tail_and_the_true_size(mcp: Mcp) -> None:
    source = "for number in range(1000): print(f'line {number:04}')"
    result = await mcp.run(source, max_output_bytes=100)
    assert result["stdout"] == (
        "".join(f"line {n:04}\n" for n in range(5))
        + "\n[... 9900 bytes left out ...]\n"
        + "".join(f"line {n:04}\n" for n in range(995, 1000))
    )
    assert (result["truncated"], result["stdout_bytes"]) == (True, 10_000)
    rest = await mcp.read_on(result["job_id"], result["next_cursor"])
    assert rest.stdout == "".join(f"line {n:04}\n" for n in range(5, 1000))


async def test_a_program_that_fails_is_a_result_with_its_traceback_and_advice(mcp: Mcp) -> None:
    answer = await mcp.call(
        "run_script_in_dir", directory=str(mcp.directory), script_content="import nowhere_to_be_found", use_uv=False
    )
    assert answer.is_error
    assert answer.data["status"] == "failed"
    assert answer.data["exit_code"] == 1
    assert "error_code" not in answer.data, "the user's failure is not ours"
    assert answer.data["error"] == "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    assert "dependencies" in answer.data["advice"]
    assert answer.data["stderr"].startswith("Traceback")


@pytest.mark.case("B182")
async def test_lists_objects_numbers_and_booleans_may_come_as_json_text(mcp: Mcp) -> None:
    result = await mcp.get(
        "run_script_in_dir",
        directory=str(mcp.directory),
        script_content="import os, sys; print(sys.argv[1:], os.environ['A'], os.environ['B'])",
        args='["--x", 5]',
        env_vars='{"A": "1", "B": 2}',
        timeout_seconds="5",
        use_uv="false",
        markdown_output="true",
    )
    assert result["stdout"] == "['--x', '5'] 1 2\n"


async def test_the_program_sees_the_python_on_path_not_the_shims_of_a_version_manager(mcp: Mcp) -> None:
    result = await mcp.run("import sys; print(sys.executable)")
    assert "/shims/" not in result["stdout"]
    assert os.access(result["stdout"].strip(), os.X_OK)
