"""The command line without the second that it takes to load: a process that has loaded it forks one that runs it.

Each command is a process of its own as ever, with its own arguments, variables, folder and streams; only what Python
does before the first line of a command is done once. With TESTS_START_AFRESH=1 every command is started as people
start it, which the tests of the entry points always do.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.helpers.processes import eventually

HERE = Path(__file__).parent
PYEXEC = Path(sys.prefix) / "bin" / "pyexec"
EXIT_SECONDS = 60.0

_running: "tuple[subprocess.Popen[bytes], tempfile.TemporaryDirectory[str]] | None" = None


def pyexec() -> list[str]:
    """Return what to start for `pyexec`; the process that forks is started when it is first needed."""
    if os.environ.get("TESTS_START_AFRESH") == "1":
        return [str(PYEXEC)]
    return [sys.executable, "-I", "-S", str(HERE / "client.py"), _socket(), str(PYEXEC)]


def stood_for(pid: int) -> int | None:
    """Return which process a process stands for, when it is one of those that hand everything over to another."""
    if _running is None:
        return None
    try:
        return int((Path(_running[1].name) / str(pid)).read_text("ascii"))
    except (OSError, ValueError):
        return None


def close() -> None:
    """End the process that forks, when there is one."""
    global _running
    if _running is None:
        return
    process, folder = _running
    _running = None
    assert process.stdin is not None
    process.stdin.close()
    process.wait(EXIT_SECONDS)
    folder.cleanup()


def _socket() -> str:
    global _running
    if _running is None:
        folder = tempfile.TemporaryDirectory(prefix="pe-forks-", dir="/tmp")
        path = Path(folder.name) / "socket"
        process = subprocess.Popen([sys.executable, str(HERE / "server.py"), str(path)], stdin=subprocess.PIPE)
        _running = process, folder
        eventually(path.exists)
    return str(Path(_running[1].name) / "socket")
