"""State folders for tests, and the processes that belong to one.

Everything that a server starts carries its state folder's path: `environment` puts it at the end of PATH, which the
launcher, the keepers and the programs inherit. So whatever a test leaves behind is found, and is not confused with
what other tests do on the same machine.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tests.helpers import forks
from tests.helpers.processes import eventually
from tests.helpers.tables import put_tables

UV = Path(sys.prefix) / "bin" / "uv"
SANDBOX_KEEPER = "pyexec.app.sandbox_keeper"
GRACE_SECONDS = 30.0

_homes: set[Path] = set()


@dataclass(frozen=True)
class Process:
    """A process that belongs to a state folder."""

    pid: int
    command: str
    is_server: bool


@contextmanager
def temporary_home(*, used: bool = True) -> Generator[Path]:
    """Make a state folder with a short path, in a folder of its own; fail when a process of it is left at the end.

    One that is `used` has the tables of records already; any other is as on the first day.
    """
    base = Path(tempfile.mkdtemp(prefix="pe-", dir="/tmp"))
    home = base / "home"
    home.mkdir(mode=0o700)
    if used:
        put_tables(home)
    _homes.add(home)
    clean = False
    try:
        yield home
        if _end_sandbox_keepers(home):
            require_no_process(home, servers_may_live=False)
        clean = True
    finally:
        _homes.discard(home)
        for process in () if clean else processes_of(home):
            _kill(process.pid)
        shutil.rmtree(base, ignore_errors=True)


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a server or command: this process's, with the state folder and `more`.

    Certificates and the package index come along; settings of pyexec do not.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYEXEC_")}
    env = {**inherited, "PYEXEC_HOME": str(home), **(more or {})}
    return {**env, "PATH": f"{env.get('PATH', os.defpath)}:{home}"}


def require_no_process_of_any_home() -> None:
    """Fail when an execution is still there in a home that is in use; its servers may be."""
    running = list(_all_that_name(_homes))
    for home in list(_homes):
        if any(not process.is_server for process in _belonging_to(home, running)):
            require_no_process(home, servers_may_live=True)


def require_no_process(home: Path, *, servers_may_live: bool) -> None:
    """Fail, and end them, when processes of a home do not go away by themselves."""

    def left() -> list[Process]:
        return [process for process in processes_of(home) if not (servers_may_live and process.is_server)]

    try:
        eventually(lambda: not left(), GRACE_SECONDS)
    except AssertionError:
        stayed = left()
        for process in stayed:
            _kill(process.pid)
        raise AssertionError(f"processes were left behind: {stayed}") from None


def processes_of(home: Path) -> list[Process]:
    """Return the living processes that carry this home's path.

    The launcher of a server, and the keeper that waits for work, count as part of the server.
    """
    return _belonging_to(home, _all_that_name([home]))


def _belonging_to(home: Path, candidates: Iterable[tuple[int, bytes, bytes]]) -> list[Process]:
    found: dict[int, Process] = {}
    parents: dict[int, int] = {}
    for pid, environ, command in candidates:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if pid == os.getpid() or fields[0] in "ZX" or not _carries(environ.split(b"\0") + command.split(b"\0"), home):
            continue
        parents[pid] = int(fields[1])
        is_server = any(variable.startswith(b"PYEXEC_HOME=") for variable in environ.split(b"\0"))
        found[pid] = Process(pid, command.replace(b"\0", b" ").decode("utf-8", "replace").strip(), is_server)
    for pid in list(found):
        other = forks.stood_for(pid)
        if other is not None:
            found[other] = replace(found.pop(pid), pid=other)
    servers = {pid for pid, process in found.items() if process.is_server}
    waiting = {pid for pid, process in found.items() if "keeper" in process.command and not _holds(pid, home)}
    own = servers | waiting | {pid for pid, parent in parents.items() if parent in servers}
    return [replace(process, is_server=pid in own) for pid, process in found.items()]


def servers_of(home: Path) -> list[int]:
    """Return the pids of the servers and commands that use this home."""
    return [process.pid for process in processes_of(home) if process.is_server and "keeper" not in process.command]


def keepers_of(home: Path) -> list[int]:
    """Return the pids of the keepers of this home."""
    return [process.pid for process in processes_of(home) if not process.is_server and "keeper" in process.command]


def _end_sandbox_keepers(home: Path) -> int:
    """End those that only wait for more to do; one that still guards something is left for who looks for that.

    Returns how many processes of the home there were.
    """
    there = processes_of(home)
    for process in there:
        if process.is_server and SANDBOX_KEEPER in process.command:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
    return len(there)


def _holds(pid: int, home: Path) -> bool:
    """Tell whether a process has a file of an execution open."""
    try:
        links = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return any(link.startswith(f"{home}/executions/") for link in links)


def _all_that_name(homes: Collection[Path]) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield processes whose environment or command line, which come along, have a home's path in them.

    This looks at every process of the machine after every test, so it does as little as that takes.
    """
    paths = [os.fsencode(home) for home in homes]
    if not paths:
        return
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb", buffering=0) as file:
                environ = file.read()
            with open(f"/proc/{name}/cmdline", "rb", buffering=0) as file:
                command = file.read()
        except OSError:
            continue
        if any(path in environ or path in command for path in paths):
            yield int(name), environ, command


def _carries(texts: list[bytes], home: Path) -> bool:
    path = str(home).encode()
    return any(text == path or text.endswith((b":" + path, b"=" + path)) or path + b"/" in text for text in texts)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
