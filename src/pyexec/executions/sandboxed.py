"""What is different about an execution that runs in a sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError
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
        environments: Plans what they run on.
        packages: What they can import, as requirements.
        python: The Python that they run on.
        notes: What the reader of each result should know, a sentence each.
    """

    wall: Wall
    environments: SandboxEnvironments
    packages: tuple[str, ...]
    python: str
    notes: tuple[str, ...] = ()

    def plan(self, folder: Path, lock: Path, owner: str) -> RunPlan:
        """Plan what an execution runs in; nothing that its caller has sent counts.

        Raises:
            PyexecError: See `SandboxEnvironments.plan`.
        """
        plan = self.environments.plan(
            folder=folder, holder_lock=lock, owner=owner, python=self.python, packages=self.packages
        )
        return replace(plan, notes=(*plan.notes, *self.notes))


def check_for_sandbox(request: ExecutionRequest) -> None:
    """See that a request asks for nothing that a sandbox has not.

    Raises:
        InvalidArgumentError: It does.
    """
    for name, why in _REFUSED.items():
        if getattr(request, name):
            raise InvalidArgumentError(f"{name} was given, and the code is to run in a sandbox.", hint=why)


def turn_for_sandbox(request: ExecutionRequest) -> dict[str, object]:
    """Return what the guest in the sandbox is asked for."""
    return {"code": request.script_content, "stdin": request.stdin, "env": dict(request.env_vars), "tell": True}
