"""Values of variables and stdin are secret: they reach the program and nothing else."""

import json

from tests.helpers.homes import processes_of
from tests.helpers.mcp import Mcp

OF_THE_CALL = "swordfish-of-the-call"
OF_STDIN = "swordfish-of-stdin"
OF_THE_FILE = "swordfish-of-the-file"
OF_THE_SERVER = "swordfish-of-the-server"
SERVER_ENV = {"DATABASE_PASSWORD": OF_THE_SERVER, "PYEXEC_LOG_LEVEL": "debug"}


async def test_they_are_in_no_process_title_no_record_and_no_log(mcp: Mcp) -> None:
    (mcp.directory / "secret.env").write_text(f"FROM_FILE={OF_THE_FILE}\n")
    source = """
import os, sys, time
print(len(os.environ["TOKEN"]), len(os.environ["FROM_FILE"]), len(sys.stdin.read()), flush=True)
time.sleep(300)
"""
    secret = {"env_vars": {"TOKEN": OF_THE_CALL}, "env_file": "secret.env", "stdin": OF_STDIN}
    for use_uv in (False, True):
        job_id = await mcp.start(source, use_uv=use_uv, **secret)
        await mcp.printed(job_id, f"{len(OF_THE_CALL)} {len(OF_THE_FILE)} {len(OF_STDIN)}\n")
        titles = [process.command for process in processes_of(mcp.home)]
        assert any("script.py" in title for title in titles)
        assert not [title for title in titles if "swordfish" in title]
        await mcp.get("kill_job", job_id=job_id)
    files = [path for path in mcp.home.rglob("*") if path.is_file()]
    assert any(path.name == "pyexec.db" for path in files)
    assert [path for path in files if b"swordfish" in path.read_bytes()] == []
    assert b"swordfish" not in (mcp.home.parent / "stderr.txt").read_bytes()


async def test_they_are_in_no_error(mcp: Mcp) -> None:
    given = {"directory": str(mcp.directory), "script_content": "print()", "use_uv": False}
    for wrong in (
        {"env_vars": [OF_THE_CALL]},
        {"env_vars": f'{{"TOKEN": "{OF_THE_CALL}"'},
        {"env_vars": {"TOKEN": f"{OF_THE_CALL}\0"}},
        {"env_vars": {"TOKEN": [OF_THE_CALL]}},
        {"env_vars": {"TOKEN": OF_THE_CALL}, "timeout_seconds": -1},
        {"stdin": [OF_STDIN]},
        {"stdin": OF_STDIN, "script_path": "both.py"},
    ):
        answer = await mcp.call("run_script_in_dir", **{**given, **wrong})
        assert answer.data["error_code"] == "invalid_argument"
        assert "swordfish" not in answer.text
    answer = await mcp.call("run_script_in_dir", env_vars={"TOKEN": OF_THE_CALL}, stdin=OF_STDIN)
    assert answer.data["error_code"] == "invalid_argument"
    assert "swordfish" not in answer.text, "what is missing is named, not what was given beside it"


async def test_the_log_is_json_lines_for_its_owner_with_secrets_masked(mcp: Mcp) -> None:
    wrong = f"/no/{OF_THE_SERVER}/here"
    await mcp.refused("run_script_in_dir", directory=wrong, script_content="1", use_uv=False)
    with_credentials = "https://me:my-password@host"
    await mcp.refused("run_script_with_dependencies", python_version=with_credentials, script_content="1")
    log = mcp.home / "logs" / "pyexec.log"
    entries = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert all(entry.keys() >= {"time", "level", "logger", "pid", "message"} for entry in entries)
    messages = [entry["message"] for entry in entries]
    assert "refused: not_found: The directory /no/****/here does not exist." in messages
    everything = log.read_text("utf-8") + (mcp.home.parent / "stderr.txt").read_text("utf-8")
    assert "swordfish" not in everything
    assert "my-password" not in everything


async def test_the_state_folder_is_for_its_owners_eyes_only(mcp: Mcp) -> None:
    await mcp.run("print('private')")
    in_it = sorted(mcp.home.iterdir())
    assert {path.name for path in in_it} >= {"executions", "logs", "queues", "pyexec.db"}
    assert [path for path in in_it if path.lstat().st_mode & 0o077] == []
