"""The two ways in which a request is run, on this machine or in a sandbox, behind one port."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pyexec.domain.executions import ExecutionRequest, Harness
from pyexec.domain.text import legible
from pyexec.environments.asking import Asked, RunPlan
from pyexec.environments.beside import TOOLS_VARIABLE, tools_link
from pyexec.environments.plan import Planner
from pyexec.environments.uv import patience
from pyexec.executions.placing import Placed
from pyexec.executions.requests import CheckedRequest
from pyexec.sandbox.claims import LOCK
from pyexec.sandbox.ports import SharedFolder, Wall
from pyexec.sessions.directory import Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A request that has been checked, and its folder, which is made before it is run or while it begins to.

    `env` are the variables of a program on this machine; `session` is what it is a turn of.
    """

    id: str
    owner: str
    checked: CheckedRequest
    env: dict[str, str] = field(repr=False)
    folder: Path
    placed: Placed
    session: Found | None = None

    @property
    def lock(self) -> Path:
        """What its keeper holds."""
        return self.folder / LOCK


class Way(Protocol):
    """How requests are run."""

    @property
    def wall(self) -> Wall:
        """What stands between them and the machine."""
        ...

    def check(self, request: ExecutionRequest) -> None:
        """See that a request asks for nothing that cannot be had this way.

        Raises:
            InvalidArgumentError: It does.
        """
        ...

    def remembered(self, owner: str, request: ExecutionRequest) -> Found | None:
        """Return the session that it is a turn of as it was when it was last seen to live; None for any other.

        Good for asking whether the turn can begin at once, and for nothing else.
        """
        ...

    def enter(self, owner: str, request: ExecutionRequest) -> Found | None:
        """Return the session that it is a turn of, if any; it is made if there is none yet.

        Raises:
            InvalidArgumentError: It can be no id, or does not fit the rest of the request.
            SessionEndedError: It has ended.
            SessionBusyError: Too many wait for their turn in it.
        """
        ...

    def directory(self, checked: CheckedRequest) -> str:
        """Return where the program runs, as the record tells it."""
        ...

    def plan(self, ready: Ready) -> RunPlan:
        """Plan what it runs on.

        Raises:
            PyexecError: It cannot be had.
        """
        ...

    def build_environ(self, ready: Ready) -> Mapping[str, str]:
        """Return the variables that what prepares it is run with."""
        ...

    def environ(self, ready: Ready) -> Mapping[str, str]:
        """Return the variables that the program is started with."""
        ...

    def turn(self, ready: Ready) -> Mapping[str, object]:
        """Return what a guest is asked for."""
        ...

    def folders(self, ready: Ready) -> tuple[SharedFolder, ...]:
        """Return the folders of this machine that can be read where it runs, if not all can."""
        ...


class OnThisMachine:
    """Runs requests as the user's own programs."""

    def __init__(self, wall: Wall, planner: Planner) -> None:
        self._wall = wall
        self._planner = planner

    @property
    def wall(self) -> Wall:
        """See `Way.wall`."""
        return self._wall

    def check(self, request: ExecutionRequest) -> None:
        """See `Way.check`."""

    def remembered(self, owner: str, request: ExecutionRequest) -> Found | None:
        """See `Way.remembered`."""

    def enter(self, owner: str, request: ExecutionRequest) -> Found | None:
        """See `Way.enter`."""

    def directory(self, checked: CheckedRequest) -> str:
        """See `Way.directory`."""
        return legible(str(checked.directory))

    def plan(self, ready: Ready) -> RunPlan:
        """See `Way.plan`; puts into `ready.env` what leads the program to what it runs on."""
        request = ready.checked.request
        harness = request.harness or Harness()
        plan = self._planner.plan(
            Asked(
                script=ready.placed.script,
                module=request.module,
                header_source=ready.placed.program.header_source,
                tools=ready.placed.program.tools,
                args=request.args,
                use_uv=request.use_uv,
                python_version=request.python_version,
                dependencies=request.dependencies or (),
                constraints=request.constraints,
                index_url=request.index_url,
                environment=request.environment,
                keep_as=request.keep_as,
                directory=ready.checked.directory,
                project=request.script_content is None,
                owner=ready.owner,
                environ=ready.env,
                folder=ready.folder,
                holder_lock=ready.lock,
                beside=harness.packages,
                beside_lacking=harness.lacking,
            )
        )
        if harness.packages:
            ready.env[TOOLS_VARIABLE] = str(tools_link(ready.folder))
        if plan.first_on_path is not None:
            path = [str(plan.first_on_path), ready.env.get("PATH", "")]
            ready.env["PATH"] = os.pathsep.join(filter(None, path))
        return plan

    def build_environ(self, ready: Ready) -> Mapping[str, str]:
        """See `Way.build_environ`."""
        return {**ready.env, **patience(ready.env)}

    def environ(self, ready: Ready) -> Mapping[str, str]:
        """See `Way.environ`."""
        return ready.env

    def turn(self, ready: Ready) -> Mapping[str, object]:
        """See `Way.turn`; the text on stderr is for those who read no more than the streams."""
        return {"path": str(ready.placed.script), "stdin": ready.checked.request.stdin is not None, "tell": True}

    def folders(self, ready: Ready) -> tuple[SharedFolder, ...]:
        """See `Way.folders`."""
        return ()
