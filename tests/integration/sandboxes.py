"""Driving the engine with its programs in sandboxes."""

from pathlib import Path
from typing import Any

from pyexec.domain.executions import Execution, ExecutionRequest, Harness
from pyexec.sessions.service import SessionService
from pyexec.storage.state_folder import StateFolder
from tests.helpers.homes import SANDBOX_KEEPER, processes_of
from tests.helpers.processes import all_pids
from tests.integration.environments import UvEngine

SETTINGS = {"sandbox_packages": "ipython", "sandbox_memory": 256, "sandbox_cpu": 1, "sandbox_ready": 1}
FOREVER = "import time\nprint('up', flush=True)\nwhile True: time.sleep(1)"
BUILD_SECONDS = 240.0


class SandboxEngine(UvEngine):
    """An engine whose programs run in sandboxes."""

    async def submit(self, code: str = "", /, **request: Any) -> Execution:
        given: dict[str, Any] = {"harness": Harness(guest=True), "sandboxed": True, "timeout_seconds": 60, **request}
        return await self.executions.submit(self.principal, ExecutionRequest(script_content=code, **given))

    async def run(self, code: str = "", /, **request: Any) -> Execution:
        return await self.wait(await self.submit(code, **request), BUILD_SECONDS)

    @property
    def sessions(self) -> SessionService:
        """The sessions."""
        assert self.services.sessions is not None
        return self.services.sessions

    def session_state(self, session_id: str) -> str | None:
        """Return the state that a session is in."""
        session = StateFolder(self.home).sessions.of(self.principal.key, session_id).read()
        return session.state if session else None

    async def value(self, code: str, session_id: str | None = None) -> str | None:
        """Run code; return the value of its last expression."""
        turn = await self.executions.turn_of(await self.run(code, session_id=session_id))
        assert turn is not None
        return turn.value

    async def begin_one(self, session_id: str | None = None) -> tuple[Execution, int]:
        """Start something that does not end; return it with the pid of the first process of its sandbox."""
        execution = await self.submit(FOREVER, timeout_seconds=0, session_id=session_id)
        async for piece in self.executions.follow(self.principal, execution.id):
            if b"up" in piece.data:
                break
        pid = (await self.get(execution)).pid
        assert pid is not None
        return execution, pid


def keepers(home: Path) -> list[int]:
    return [process.pid for process in processes_of(home) if SANDBOX_KEEPER in process.command]


def behind(home: Path) -> list[int]:
    """What is behind the walls that this home's keepers have put up, by their control groups."""
    keys = [folder.name for folder in (home / "sandboxes").iterdir()]
    return [pid for pid in all_pids() if any(f"pyexec-{key}/" in _groups(pid) for key in keys)]


def _groups(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""
