"""Programs that fail: what is said about it, and that it is their failure and not ours."""

import signal

import pytest

from tests.helpers.mcp import Mcp


@pytest.mark.case("B001")
async def test_asking_for_input_that_nobody_gives_fails_at_once_with_advice(mcp: Mcp) -> None:
    source = "print('before', flush=True); n = input('name? '); print(f'n == {n!r}')"
    result = await mcp.run(source, timeout_seconds=60)
    assert (result["status"], result["exit_code"]) == ("failed", 1)
    assert result["stdout"].startswith("before\n")
    assert result["error"] == "EOFError: EOF when reading a line"
    assert "stdin" in result["advice"]
    given = await mcp.run(source, stdin="Al\n")
    assert given["stdout"] == "before\nname? n == 'Al'\n"


@pytest.mark.case("B010")
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("SIGSEGV", "import os; os.kill(os.getpid(), 11)"),
        ("SIGABRT", "import os; os.abort()"),
        ("SIGKILL", "import os; os.kill(os.getpid(), 9)"),
    ],
)
async def test_a_death_by_signal_is_named_with_the_shells_exit_code(mcp: Mcp, name: str, source: str) -> None:
    answer = await mcp.call("run_script_in_dir", directory="/tmp", script_content=source, use_uv=False)
    number = getattr(signal, name)
    assert answer.is_error
    assert (answer.data["status"], answer.data["signal"], answer.data["exit_code"]) == ("failed", name, 128 + number)
    assert f"ended by {name} (exit code {128 + number})" in answer.text


@pytest.mark.case("B020")
async def test_the_traceback_shows_the_users_lines_and_no_frames_of_ours(mcp: Mcp) -> None:
    source = "def inner(x):\n    return 1/x\n\ndef outer():\n    return inner(0)\n\nouter()"
    result = await mcp.run(source)
    places = [line for line in result["stderr"].splitlines() if line.startswith("  File ")]
    assert [place.partition(", ")[2] for place in places] == [
        "line 7, in <module>",
        "line 5, in outer",
        "line 2, in inner",
    ]
    assert all(place.partition(", ")[0].endswith('/script.py"') for place in places)
    for shown in ("outer()", "return inner(0)", "return 1/x"):
        assert shown in result["stderr"]
    assert result["error"] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("source", "error", "code"),
    [
        ("raise Exception('plain')", "Exception: plain", 1),
        ("raise ValueError('two\\nlines')", "ValueError: two", 1),
        ("raise SystemExit('a message')", "It exited with code 1.", 1),
        ("raise SystemExit(77)", "It exited with code 77.", 77),
        ("raise KeyboardInterrupt", "It was ended by SIGINT (exit code 130)", 130),
        ("def broken(:", "SyntaxError: invalid syntax", 1),
    ],
    ids=["plain", "lines", "message", "code", "interrupt", "syntax"],
)
async def test_the_sentence_is_the_programs_own_last_word(mcp: Mcp, source: str, error: str, code: int) -> None:
    result = await mcp.run(source)
    assert (result["status"], result["exit_code"]) == ("failed", code)
    assert result["error"].startswith(error)


@pytest.mark.case("B015")
async def test_a_source_that_is_not_utf_8_is_a_syntax_error_of_the_user(mcp: Mcp) -> None:
    script = mcp.directory / "latin.py"
    given = {"directory": str(mcp.directory), "script_path": "latin.py"}
    script.write_bytes(b"x = '\xe9'\nprint(len(x))\n")
    for use_uv in (False, True):
        failed = await mcp.call("run_script_in_dir", **given, use_uv=use_uv)
        assert failed.is_error
        assert failed.data["error"].startswith("SyntaxError: ")
        for part in ("latin.py", "line 1", "utf-8"):
            assert part in failed.data["stderr"].lower()
    script.write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\nprint(len(x))\n")
    for use_uv in (False, True):
        assert (await mcp.get("run_script_in_dir", **given, use_uv=use_uv))["stdout"] == "1\n"


@pytest.mark.case("B011")
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
async def test_inline_code_is_a_file_that_worker_processes_can_import(mcp: Mcp, method: str) -> None:
    source = f"""
import multiprocessing as mp
def f(x): return x*x
if __name__=='__main__':
    with mp.get_context({method!r}).Pool(2) as p: print(p.map(f,[1,2,3]))
"""
    result = await mcp.run(source, timeout_seconds=20, wait_seconds=30)
    assert result["stdout"] == "[1, 4, 9]\n", result


@pytest.mark.case("B052")
async def test_the_final_result_repeats_what_was_read_before(mcp: Mcp) -> None:
    source = """
import os, sys, time
print("o", flush=True); print("e", file=sys.stderr, flush=True)
while not os.path.exists("read"): time.sleep(0.02)
sys.exit(2)
"""
    job_id = await mcp.start(source)
    await mcp.printed(job_id, "o")
    assert "o" in await mcp.stream(job_id)
    (mcp.directory / "read").touch()
    ended = await mcp.finished(job_id)
    assert (ended["stdout"], ended["stderr"], ended["exit_code"]) == ("o\n", "e\n", 2)


async def test_a_flood_on_stdout_does_not_hide_the_traceback(mcp: Mcp) -> None:
    result = await mcp.run("print('x' * 500_000)\nraise ValueError('the reason')")
    assert result["stderr"].startswith("Traceback")
    assert result["stderr"].endswith("ValueError: the reason\n")
    assert (result["error"], result["truncated"]) == ("ValueError: the reason", True)
    assert len(result["stdout"]) + len(result["stderr"]) < 60_100


async def test_a_program_whose_folder_is_taken_away_ends_as_it_would(mcp: Mcp) -> None:
    result = await mcp.run("import os; os.rmdir(os.getcwd()); print('gone')", directory=str(_empty(mcp)))
    assert (result["status"], result["stdout"]) == ("completed", "gone\n")


def _empty(mcp: Mcp) -> object:
    folder = mcp.directory / "to be removed"
    folder.mkdir()
    return folder
