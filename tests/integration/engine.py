"""Driving the engine below MCP: real keepers and programs, in a state folder of the test's own."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyexec.app.principal import local_principal
from pyexec.app.services import open_services
from pyexec.domain.executions import Execution, ExecutionRequest, Outcome
from pyexec.executions.observing import ExecutionObserver
from pyexec.settings import load_settings
from pyexec.storage.output import Output
from pyexec.storage.state_folder import StateFolder
from tests.helpers.homes import environment
from tests.helpers.processes import alive, eventually, holding

WAIT_SECONDS = 100.0


class Engine:
    """The services of one server, in this process."""

    def __init__(self, home: Path, observer: ExecutionObserver | None = None, /, **settings: object) -> None:
        self.home = home
        self.directory = home.parent / "work"
        self.directory.mkdir(exist_ok=True)
        given = {f"PYEXEC_{name.upper()}": str(value) for name, value in settings.items()}
        self.settings = load_settings(environment(home, given), directory=self.directory)
        self.services = open_services(self.settings, observer)
        self.executions = self.services.executions
        self.principal = local_principal()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go, as a server that is asked to end does."""
        self.services.close()

    async def submit(self, code: str, /, **request: Any) -> Execution:
        """Start a program."""
        given: dict[str, Any] = {"use_uv": False, **request}
        return await self.executions.submit(self.principal, ExecutionRequest(script_content=code, **given))

    async def wait(self, execution: Execution, seconds: float = WAIT_SECONDS) -> Execution:
        """Wait for its end."""
        ended = await self.executions.wait(self.principal, execution.id, seconds)
        assert ended.ended, f"still {ended.state} after {seconds:g} s"
        return ended

    async def run(self, code: str, /, **request: Any) -> Execution:
        """Run a program to its end."""
        return await self.wait(await self.submit(code, **request))

    async def get(self, execution: Execution) -> Execution:
        """Look at it as it stands now."""
        return await self.executions.get(self.principal, execution.id)

    async def stop(self, execution: Execution, mode: Any = "cancel", reason: str = "") -> Execution:
        """End it."""
        return await self.executions.stop(self.principal, execution.id, mode, reason)

    async def output(self, execution: Execution, **how: Any) -> Output:
        """Read what it printed."""
        return (await self.executions.read(self.principal, execution.id, **how)).output

    async def stdout(self, execution: Execution) -> str:
        """Read what it printed, as far as an answer carries it."""
        return (await self.output(execution)).stdout.text

    async def stderr(self, execution: Execution) -> str:
        """Read what it said on stderr."""
        return (await self.output(execution)).stderr.text

    def folder(self, execution: Execution) -> Path:
        """Return where its files lie."""
        return StateFolder(self.settings.home).unpacked(execution.id)

    def keeper(self, execution: Execution) -> int:
        """Return the pid of its keeper: the process that holds its lock, once the launcher has let go of it too."""
        lock = self.folder(execution) / "lock"

        def the_only_holder() -> int | None:
            holders = holding(lock)
            return holders[0] if len(holders) == 1 else None

        pid = eventually(the_only_holder)
        assert pid is not None
        return pid

    def launcher(self) -> int:
        """Return the pid of this server's launcher."""
        self.services.launcher.warm()
        running = self.services.launcher._running
        assert running is not None
        return running[1].pid

    def program(self, execution: Execution) -> int:
        """Return the pid of the program, once it runs."""
        started = self.folder(execution) / "started.json"
        eventually(started.exists)
        return int(json.loads(started.read_bytes())["pid"])

    def printed(self, execution: Execution, lines: int = 1, stream: str = "stdout") -> list[str]:
        """Return its first lines, once they are there."""
        path = self.folder(execution) / stream

        def complete() -> list[str]:
            text = path.read_text("utf-8") if path.exists() else ""
            found = text.split("\n")[:-1]
            return found if len(found) >= lines else []

        return eventually(complete)

    def pids(self, execution: Execution, count: int) -> list[int]:
        """Return the pids that a program prints, one a line."""
        return [int(line) for line in self.printed(execution, count)]


def outcome_of(execution: Execution) -> Outcome:
    """Return the outcome of an execution that has one."""
    assert execution.outcome is not None
    return execution.outcome


def gone(pids: list[int]) -> None:
    """Wait until none of these processes is left."""
    eventually(lambda: not [pid for pid in pids if alive(pid)])


class Server:
    """A server process that does what it is told, a line at a time."""

    def __init__(self, home: Path, path: Path | None = None, **settings: object) -> None:
        given = {f"PYEXEC_{name.upper()}": str(value) for name, value in settings.items()}
        env = environment(home, given)
        if path is not None:
            env["PATH"] = f"{path}:{env['PATH']}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.driver", str(home.parent / "work")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=Path(__file__).parents[2],
            env=env,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def tell(self, **command: Any) -> None:
        """Send a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """Read an answer; None when the server has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, **command: Any) -> Any:
        """Send a command and read the answer."""
        self.tell(**command)
        answer = self.answer()
        assert answer is not None, f"the server ended with {self.process.wait()}"
        return answer

    def kill(self) -> None:
        """Kill it as nothing else can be killed."""
        self.process.kill()
        self.process.wait()

    def hang_up(self) -> None:
        """Have it end, as a client does that has gone."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def close(self) -> None:
        """Hang up and see that it ends."""
        assert self.process.stdout is not None
        self.hang_up()
        try:
            self.process.wait(WAIT_SECONDS)
        finally:
            self.kill()
            self.process.stdout.close()


@contextmanager
def server(home: Path, path: Path | None = None, **settings: object) -> Generator[Server]:
    """Start a server process; programs are looked for in `path` first."""
    started = Server(home, path, **settings)
    try:
        yield started
    finally:
        started.close()
