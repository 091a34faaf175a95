"""The first moments of a server, on a machine where nothing works: no state folder, no cache, no network."""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.pipes import PipeServer, pipe_server

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def pipes(module_home: Path) -> Iterator[PipeServer]:
    base = module_home.parent
    (base / "file").touch()
    env = {
        "PYEXEC_HOME": str(base / "file" / "home"),
        "HOME": str(base / "nobody"),
        "UV_CACHE_DIR": str(base / "cold"),
        "HTTP_PROXY": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
        "ALL_PROXY": NOWHERE,
        "UV_INDEX_URL": f"{NOWHERE}/simple",
    }
    with pipe_server(module_home, env=env) as server:
        yield server


@pytest.mark.case("B184")
def test_initialize_and_the_list_of_tools_are_answered_at_once(pipes: PipeServer) -> None:
    said = pipes.initialize()
    assert said["serverInfo"] == {"name": "pyexec", "version": version("mcp-pyexec")}
    assert "no sandbox" in said["instructions"]
    tools: list[dict[str, Any]] = pipes.request("tools/list")["tools"]
    assert len(tools) == 25


def test_a_call_that_needs_the_state_folder_says_that_it_cannot_be_used(pipes: PipeServer, module_home: Path) -> None:
    calls: dict[str, dict[str, Any]] = {
        "run_script_in_dir": {"directory": "/tmp", "script_content": "1", "use_uv": False},
        "py_list_jobs": {},
        "get_job_output": {"job_id": "x"},
    }
    for tool, arguments in calls.items():
        result = pipes.answer(pipes.call(tool, **arguments))["result"]
        assert result["isError"]
        assert result["structuredContent"]["error_code"] == "state_unusable"
        for word in (str(module_home.parent / "file" / "home"), "PYEXEC_HOME"):
            assert word in result["structuredContent"]["error"]


def test_a_wrong_setting_is_said_on_stderr_before_anything_else(module_home: Path) -> None:
    with pipe_server(module_home, env={"PYEXEC_CONCURRENT": "many"}) as server:
        assert server.process.wait(20) == 1
        assert server.lines == []
    said = (module_home.parent / "stderr.txt").read_text()
    assert "PYEXEC_CONCURRENT is 'many'; it must be a whole number between 1 and 4096." in said
    assert "Traceback" not in said
