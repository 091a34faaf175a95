"""The names under which people start the server already."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.homes import environment
from tests.helpers.pipes import pipe_server

BIN = Path(sys.prefix) / "bin"
OLD_PACKAGE = (sys.executable, "-m", "python_mcp_server")


@pytest.mark.parametrize("name", ["python-executor-mcp", "python-mcp-server", "mcp-pyexec"])
def test_each_of_them_is_the_server(module_home: Path, name: str) -> None:
    said = subprocess.run(
        [BIN / name, "--help"], capture_output=True, text=True, env=environment(module_home), check=True
    )
    assert said.stdout.startswith(f"Usage: {name} [OPTIONS]\n\n  Serve MCP: one client over stdin and stdout")


@pytest.mark.parametrize(
    "command",
    [
        # That it is the server is shown above.
        pytest.param((BIN / "python-executor-mcp",), id="python-executor-mcp", marks=pytest.mark.exhaustive),
        pytest.param((BIN / "pyexec", "serve"), id="pyexec serve"),
        pytest.param(OLD_PACKAGE, id="python -m python_mcp_server"),
    ],
)
def test_each_answers_initialize_and_takes_a_directory(
    module_home: Path, tmp_path: Path, command: tuple[str | Path, ...]
) -> None:
    with pipe_server(module_home, command=(*command, "--directory", tmp_path)) as server:
        assert server.initialize()["serverInfo"]["name"] == "pyexec"
        if command == OLD_PACKAGE:
            call = server.call("run_script_with_dependencies", script_path="gone.py")
            refused = server.answer(call)["result"]["structuredContent"]
            assert f"{tmp_path}/gone.py" in refused["error"], "relative paths begin there"
        server.kill()
