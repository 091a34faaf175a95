"""SIGUSR1: what a server that seems to hang is doing, without ending it."""

import json
import signal
from pathlib import Path

from tests.helpers.pipes import pipe_server
from tests.helpers.processes import eventually

SECRET = "s3cr3t-of-the-server"


def test_a_server_writes_its_stacks_to_stderr_and_to_the_log_and_goes_on(state_home: Path) -> None:
    with pipe_server(state_home, env={"MY_TOKEN": SECRET}) as server:
        server.initialize()
        given = {"directory": "/tmp", "use_uv": False, "env_vars": {"OTHER": SECRET}}
        code = "import time; print('up', flush=True); time.sleep(300)"
        call = server.call("run_script_in_dir", script_content=code, progress_token="t", **given)
        eventually(server.progress)
        log = state_home / "logs" / "pyexec.log"

        asked = 0

        def dumped() -> str:
            nonlocal asked
            entries = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
            dumps = [one["message"] for one in entries if one["logger"] == "pyexec.observability.stacks"]
            if len(dumps) == asked:  # Again: it may have been on its way to where it waits.
                server.process.send_signal(signal.SIGUSR1)
                asked += 1
            return next((dump for dump in dumps if "in KeeperConnection.next" in dump), "")

        text = eventually(dumped)
        said = (state_home.parent / "stderr.txt").read_text()
        for told in (text, said):
            assert "(most recent call first)" in told
            assert "MainThread" in told
            # Down to where a task waits, through everything between: the tool, the wait, the keeper's socket.
            assert "in add_run_tools.<locals>.run_script_in_dir" in told
            assert "in KeeperConnection.next" in told
            assert SECRET not in told
        job_id = server.progress()[0].removeprefix("job ")
        server.call("kill_job", job_id=job_id)
        assert server.answer(call)["result"]["structuredContent"]["status"] == "cancelled"
