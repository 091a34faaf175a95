"""What is different about an execution that runs in a sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError, WallUnavailableError
from pyexec.domain.executions import ExecutionRequest
from pyexec.environments.asking import RunPlan
from pyexec.environments.sandboxes import SandboxEnvironments
from pyexec.sandbox.ports import Wall

DIRECTORY = "/work"
_REFUSED: Mapping[str, str] = {
    "directory": f"A sandbox sees no folder of this machine; its code runs in {DIRECTORY}.",
    "env_file": "A sandbox sees no file of this machine; give the variables as env_vars.",
    "dependencies": "A sandbox has the packages that its operator has chosen.",
    "environment": "A sandbox has the environment that its operator has chosen.",
    "keep_as": "The environment of sandboxes has no name.",
    "python_version": "A sandbox has the Python that its operator has chosen.",
    "script_path": "A sandbox sees no file of this machine; give the code itself.",
    "module": "Code for a sandbox is given as text.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandboxing:
    """How executions are put into sandboxes.

    Attributes:
        wall: What stands between them and the machine.
        environments: Plans what they run in.
        packages: What they all can import, as requirements.
        python: The Python that they run on: a version, a range or a path.
        notes: What the reader of each result should know, a sentence each.
    """

    wall: Wall
    environments: SandboxEnvironments
    packages: tuple[str, ...]
    python: str
    notes: tuple[str, ...] = ()

    def plan(self, folder: Path, holder_lock: Path, owner: str) -> RunPlan:
        """Plan what an execution runs in.

        Nothing that the caller has sent counts: what is made is shared, and made outside of sandboxes.

        Raises:
            PyexecError: See `SandboxEnvironments.plan`.
        """
        plan = self.environments.plan(
            folder=folder, holder_lock=holder_lock, owner=owner, python=self.python, packages=self.packages
        )
        return replace(plan, notes=(*plan.notes, *self.notes))


def for_sandbox(request: ExecutionRequest, sandboxing: Sandboxing | None) -> ExecutionRequest:
    """Return a request that a sandbox can carry out, having looked at what it asks for.

    Raises:
        WallUnavailableError: There are no sandboxes here.
        InvalidArgumentError: It asks for something that a sandbox has not.
    """
    if sandboxing is None:
        raise WallUnavailableError(
            "There are no sandboxes on this machine.",
            hint="They need Linux; PYEXEC_WALL=host runs the code without one, as you.",
        )
    for name, why in _REFUSED.items():
        if getattr(request, name):
            raise InvalidArgumentError(f"{name} was given, and the code is to run in a sandbox.", hint=why)
    return request


def turn_for_sandbox(request: ExecutionRequest) -> dict[str, object]:
    """Return what the guest in the sandbox is asked for."""
    return {"code": request.script_content, "stdin": request.stdin, "env": dict(request.env_vars), "tell": True}
