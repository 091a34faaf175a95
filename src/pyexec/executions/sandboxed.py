"""Running requests in sandboxes: each in one of its own, or as a turn of a session."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError, PackagesUnavailableError
from pyexec.domain.executions import ExecutionRequest
from pyexec.domain.sandboxes import DataFolder, parse_python
from pyexec.environments.asking import RunPlan
from pyexec.environments.headers import ScriptHeader, read_header
from pyexec.environments.needs import HEADER
from pyexec.environments.packages.service import Lease, PackagesAsked, PackageSets
from pyexec.environments.python_versions import accepts
from pyexec.environments.sandboxes import SandboxEnvironments
from pyexec.executions.requests import CheckedRequest
from pyexec.executions.ways import Ready
from pyexec.sandbox.ports import SharedFolder, Wall
from pyexec.sessions.directory import Found, SessionDirectory

DIRECTORY = "/work"
CODE = "/code"
_REFUSED: Mapping[str, str] = {
    "env_file": "A sandbox sees no file of this machine; give the variables as env_vars.",
    "constraints": "Packages come on top of those that sandboxes have; name the versions in dependencies.",
    "keep_as": "The environment of sandboxes has no name.",
}
_NOT_A_CELLS: Mapping[str, str] = {
    "directory": f"A sandbox sees no folder of this machine; its code runs in {DIRECTORY}.",
    "script_path": "A sandbox sees no file of this machine; give the code itself.",
    "module": "Code for a sandbox is given as text.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InSandboxes:
    """Runs requests in sandboxes; see `Way`.

    Attributes:
        wall: What stands between them and the machine.
        environments: Plans what they run on.
        sessions: The sessions there are.
        sets: Packages that callers want besides.
        packages: What they can import, as requirements.
        python: The Python that they run on, where a request does not say.
        data: Folders of this machine that they can read.
        state: The state folder, which they never can.
        notes: What the reader of each result should know, a sentence each.
    """

    wall: Wall
    environments: SandboxEnvironments
    sessions: SessionDirectory
    sets: PackageSets
    packages: tuple[str, ...]
    python: str
    data: tuple[DataFolder, ...]
    state: Path
    notes: tuple[str, ...] = ()

    def check(self, request: ExecutionRequest) -> None:
        """See `Way.check`."""
        for refused in (_REFUSED, _NOT_A_CELLS) if _is_cell(request) else (_REFUSED,):
            for name, why in refused.items():
                if getattr(request, name):
                    raise InvalidArgumentError(f"{name} was given, and the code is to run in a sandbox.", hint=why)
        if (request.script_path or "").lower().endswith(".ipynb"):
            raise InvalidArgumentError("A notebook cannot be run in a sandbox.", hint="Run it without sandboxed.")
        if request.python_version is not None:
            _check_python(request.python_version)

    def remembered(self, owner: str, request: ExecutionRequest) -> Found | None:
        """See `Way.remembered`."""
        if request.session_id is None:
            return None
        return self.sessions.remembered(
            owner, request.session_id, python=request.python_version, environment=request.environment
        )

    def enter(self, owner: str, request: ExecutionRequest) -> Found | None:
        """See `Way.enter`."""
        if request.session_id is None:
            return None
        if request.environment is not None and not self.sessions.is_chosen(owner, request.session_id):
            self.environments.require(owner, request.environment, request.python_version)
        return self.sessions.enter(
            owner, request.session_id, python=request.python_version, environment=request.environment
        )

    def directory(self, checked: CheckedRequest) -> str:
        """See `Way.directory`."""
        return DIRECTORY

    def plan(self, ready: Ready) -> RunPlan:
        """See `Way.plan`."""
        session = ready.session.session if ready.session else None
        header = read_header(ready.placed.program.header_source)
        if session is not None and session.state == "live" and session.prefix is not None:
            return self._with_packages(_plan_of_live(session.prefix, self.notes), ready, header)
        plan = self._plan_of_new(ready)
        if session is None:
            _see_that_python_fits(header, plan)
        kept = (
            () if _is_cell(ready.checked.request) else (f"Files that it writes are kept as job-file://{ready.id}/….",)
        )
        plan = self._with_packages(plan, ready, header)
        return replace(plan, notes=(*plan.notes, *kept, *self.notes))

    def build_environ(self, ready: Ready) -> Mapping[str, str]:
        """See `Way.build_environ`; a caller of sandboxes has no say in these."""
        named = _environment_of(ready) is not None
        return self.environments.build_environ_of_named if named else self.environments.build_environ

    def environ(self, ready: Ready) -> Mapping[str, str]:
        """See `Way.environ`: there are none of this machine."""
        return {}

    def turn(self, ready: Ready) -> Mapping[str, object]:
        """See `Way.turn`."""
        request = ready.checked.request
        asked = {"code": request.script_content, "stdin": request.stdin, "env": dict(request.env_vars), "tell": True}
        return asked if _is_cell(request) else {**asked, "program": _program(ready.checked)}

    def folders(self, ready: Ready) -> tuple[SharedFolder, ...]:
        """See `Way.folders`.

        Raises:
            InvalidArgumentError: The folder of the program has pyexec's own state in it.
        """
        data = tuple(SharedFolder(place=one.place, path=Path(one.path)) for one in self.data if one.is_for(ready.owner))
        shown = None if _is_cell(ready.checked.request) else _folder_of(ready.checked)
        if shown is None:
            return data
        folder = shown.resolve()
        if self.state.resolve().is_relative_to(folder):
            raise InvalidArgumentError(
                f"{folder} cannot be in a sandbox: pyexec's own state lies in it.", hint="Put the script elsewhere."
            )
        return (*data, SharedFolder(place=CODE, path=folder))

    def _plan_of_new(self, ready: Ready) -> RunPlan:
        """Return how something runs in an interpreter that is not there yet."""
        environment = _environment_of(ready)
        session = ready.session.session if ready.session else None
        python = ready.checked.request.python_version or (session.python if session else None)
        if environment is not None:
            return self.environments.plan_named(
                environment, folder=ready.folder, holder_lock=ready.lock, owner=ready.owner, python=python
            )
        plan = self.environments.plan(
            folder=ready.folder,
            holder_lock=ready.lock,
            owner=ready.owner,
            python=python or self.python,
            packages=self.packages,
        )
        return plan if python else replace(plan, usual=True)

    def _with_packages(self, plan: RunPlan, ready: Ready, header: ScriptHeader) -> RunPlan:
        """Return the plan with the packages on top that the header and the request ask for."""
        dependencies = (*header.dependencies, *(ready.checked.request.dependencies or ()))
        if header.uv_settings:
            plan = replace(plan, notes=(*plan.notes, f"[tool.uv] in {HEADER} does not count in a sandbox."))
        if not dependencies:
            return plan
        if ready.session is not None and plan.environment is None and plan.prepare is None:
            plan = replace(plan, environment=self.environments.at(Path(plan.python).parents[1]))
            if plan.environment is None:
                raise PackagesUnavailableError("What this session runs on has been removed.", hint="Restart it.")
        asked = PackagesAsked(
            requirements=dependencies,
            owner=ready.owner,
            index_url=ready.checked.request.index_url,
            into=ready.session.folder.packages if ready.session is not None else None,
        )
        found = self.sets.plan(asked, plan, Lease(folder=ready.folder, lock=ready.lock))
        notes = (*plan.notes, *found.notes)
        if found.ready is None:
            return replace(plan, prepare=found.prepare, notes=notes)
        base = plan.environment.packages if plan.environment is not None else ()
        packages = tuple(sorted((*base, *found.ready.packages)))
        return replace(plan, packages=packages, package_folder=found.ready.folder, notes=notes)


@lru_cache(maxsize=1000)
def _plan_of_live(prefix: str, notes: tuple[str, ...]) -> RunPlan:
    """Return how a turn runs in an interpreter that is there already."""
    python = f"{prefix}/bin/python"
    return RunPlan(argv=(python,), strategy="uv-run", python=python, python_version=None, notes=notes)


def _is_cell(request: ExecutionRequest) -> bool:
    """Tell whether it is run as a notebook's cell is, and not as a program."""
    return request.harness is not None and request.harness.guest


def _environment_of(ready: Ready) -> str | None:
    """Return the name of the environment that something runs in; None for the usual one."""
    session = ready.session.session if ready.session else None
    return ready.checked.request.environment or (session.environment if session else None)


def _see_that_python_fits(header: ScriptHeader, plan: RunPlan) -> None:
    wanted, has = header.requires_python, plan.python_version
    if wanted is not None and has is not None and not accepts(wanted, has):
        raise InvalidArgumentError(
            f"{HEADER.capitalize()} asks for Python {wanted!r}, and the sandbox has {has}.",
            hint="Choose another with python_version, or run it without sandboxed.",
        )


def _folder_of(checked: CheckedRequest) -> Path | None:
    """Return the folder that a program can read: the directory that was named, or else that of its script."""
    script = checked.script
    if checked.request.directory is not None and (script is None or script.is_relative_to(checked.directory)):
        return checked.directory
    return script.parent if script is not None else None


def _program(checked: CheckedRequest) -> dict[str, object]:
    """Return what the guest is told of a program."""
    folder, script, request = _folder_of(checked), checked.script, checked.request
    return {
        "folder": None if folder is None else CODE,
        "script": None if script is None or folder is None else str(Path(CODE, script.relative_to(folder))),
        "module": request.module,
        "args": request.args,
    }


def _check_python(text: str) -> None:
    try:
        wanted = parse_python(text)
    except ValueError:
        wanted = "/"
    if wanted.startswith("/"):
        raise InvalidArgumentError(
            f"python_version is {text[:100]!r}; in a sandbox it must be a version from 3.12 on, or a range such as "
            "'>=3.12,<3.14'."
        )
