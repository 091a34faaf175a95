"""The command line without the second that it takes to load: a process that has loaded it forks one that runs it.

Each command is a process of its own as ever, with its own arguments, variables, folder and streams; only what Python
does before the first line of a command is done once. With TESTS_START_AFRESH=1 every command is started as people
start it, which the tests of the entry points always do. Workers of xdist share the process of their controller when
all tests run.
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

_SHARED = "TESTS_FORKS"

_running: "tuple[subprocess.Popen[bytes], tempfile.TemporaryDirectory[str]] | None" = None


def pyexec() -> list[str]:
    """Return what to start for `pyexec`; the process that forks is started when it is first needed."""
    if os.environ.get("TESTS_START_AFRESH") == "1":
        return [str(PYEXEC)]
    path = (_folder() or _start()) / "socket"
    eventually(path.exists)
    return [sys.executable, "-I", "-S", str(HERE / "client.py"), str(path), str(PYEXEC)]


def share() -> None:
    """Start the process that forks for all processes that are started from here on, until `close`."""
    os.environ[_SHARED] = str(_start())


def stood_for(pid: int) -> int | None:
    """Return which process a process stands for, when it is one of those that hand everything over to another."""
    folder = _folder()
    if folder is None:
        return None
    try:
        return int((folder / str(pid)).read_text("ascii"))
    except (OSError, ValueError):
        return None


def close() -> None:
    """End the process that forks, when this process has started one."""
    global _running
    if _running is None:
        return
    os.environ.pop(_SHARED, None)
    process, folder = _running
    _running = None
    assert process.stdin is not None
    process.stdin.close()
    process.wait(EXIT_SECONDS)
    folder.cleanup()


def _folder() -> Path | None:
    shared = os.environ.get(_SHARED)
    if shared:
        return Path(shared)
    return None if _running is None else Path(_running[1].name)


def _start() -> Path:
    global _running
    folder = tempfile.TemporaryDirectory(prefix="pe-forks-", dir="/tmp")
    command = [sys.executable, str(HERE / "server.py"), str(Path(folder.name) / "socket")]
    _running = subprocess.Popen(command, stdin=subprocess.PIPE), folder
    return Path(folder.name)
