"""What a call costs on top of the program it runs: a hello script through a server that is warm."""

import time
from typing import Any

from bench import Bench
from figures import Figure, in_milliseconds, interleave
from mcp_client import McpClient
from processes import run


def measure(bench: Bench) -> list[Figure]:
    installation = bench.installation
    environ = installation.environ()
    plain = [installation.python, "hello.py"]
    with_uv = [installation.uv, "run", "--no-project", "--python", installation.python, "hello.py"]
    uv_arguments = bench.hello(use_uv=True, python_version=installation.python)
    with bench.serve(bench.new_folder("home")) as client:
        bench.greet(client)
        run(with_uv, environ, cwd=bench.programs)
        _call(client, uv_arguments)
        ours, python, ours_uv, uv = interleave(
            bench.rounds(full=41, quick=11),
            lambda: _call(client, bench.hello()),
            lambda: run(plain, environ, cwd=bench.programs).wall,
            lambda: _call(client, uv_arguments),
            lambda: run(with_uv, environ, cwd=bench.programs).wall,
        )
    return [
        in_milliseconds(
            "hello, warm, use_uv=false: against python hello.py", ours, python, at_most=2, plus_milliseconds=30
        ),
        in_milliseconds("hello, warm, use_uv=true: against uv run hello.py", ours_uv, uv, at_most=1.2),
    ]


def _call(client: McpClient, arguments: dict[str, Any]) -> float:
    started = time.perf_counter()
    client.call("run_script_in_dir", **arguments)
    return time.perf_counter() - started
