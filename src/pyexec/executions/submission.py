"""From a request to an execution that somebody guards."""

import os
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from anyio.to_thread import run_sync

from pyexec.domain.errors import PyexecError, QueueFullError, WallUnavailableError
from pyexec.domain.executions import Execution, ExecutionRequest, Harness
from pyexec.domain.limits import ExecutionLimits
from pyexec.domain.principals import Principal
from pyexec.domain.text import legible
from pyexec.environments.asking import Asked, RunPlan
from pyexec.environments.beside import TOOLS_VARIABLE, tools_link
from pyexec.environments.credentials import masked
from pyexec.environments.orders import Answer, write_answer
from pyexec.environments.plan import Planner
from pyexec.environments.uv import patience
from pyexec.environments.variables import child_environment
from pyexec.executions.harnesses import PlannedProgram, companion_folder, framed, told
from pyexec.executions.keeping import keep_inline_code
from pyexec.executions.placing import Placed, place, source_of
from pyexec.executions.requests import CheckedRequest, check_request
from pyexec.executions.sandboxed import DIRECTORY, Sandboxing, check_for_sandbox, turn_for_sandbox
from pyexec.executions.settling import Settler
from pyexec.sandbox.claims import LOCK, Claim, claim
from pyexec.sandbox.ports import Launch, Preparing, Wall
from pyexec.scripts.autosaved import AutosavedScripts
from pyexec.storage.descriptors import write_descriptor
from pyexec.storage.executions import DuplicateRequestError, ExecutionStore
from pyexec.storage.state_folder import StateFolder

ID_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A request that has been checked and has a folder of its own; only the way to run it is not known yet."""

    id: str
    owner: str
    checked: CheckedRequest
    env: dict[str, str] = field(repr=False)
    folder: Path
    lock: Path
    placed: Placed


class Submitter:
    """Checks what is asked for, decides how it is run, and hands it to a keeper."""

    def __init__(
        self,
        *,
        folder: StateFolder,
        store: ExecutionStore,
        settler: Settler,
        wall: Wall,
        sandboxing: Sandboxing | None,
        planner: Planner,
        autosaved: AutosavedScripts,
        limits: ExecutionLimits,
        environ: Mapping[str, str],
        directory: Path,
    ) -> None:
        self._folder = folder
        self._store = store
        self._settler = settler
        self._wall = wall
        self._sandboxing = sandboxing
        self._planner = planner
        self._autosaved = autosaved
        self._limits = limits
        self._environ = environ
        self._directory = directory

    async def submit(self, principal: Principal, request: ExecutionRequest) -> Execution:
        """Start an execution, or put it in line; it is guarded, and survives this process, when this returns.

        A repeated `request_id` starts nothing and returns the execution of the first call.

        Raises:
            InvalidArgumentError: A value is not allowed.
            NotFoundError: A directory or file does not exist.
            WallUnavailableError: It is to run in a sandbox, and there is none.
            UvNotFoundError: uv is needed and not there.
            InterpreterNotFoundError: No Python fits.
            QueueFullError: Too many are waiting.
            DiskFullError: The disk is nearly full.
            KeeperUnavailableError: No keeper could be started.
        """
        try:
            return await run_sync(self._submit, principal, request)
        except DuplicateRequestError:  # The same call, made twice at once: the other one was first.
            return await self.submit(principal, request)

    def _submit(self, principal: Principal, request: ExecutionRequest) -> Execution:
        ready = self._make_ready(principal, request)
        if isinstance(ready, Execution):
            return ready
        try:
            plan = self._plan(ready)
            companions = self._companions(ready)
            execution = _new_record(principal, ready, plan)
            self._start(execution, ready, plan, companions)
        except BaseException:
            _discard(ready.folder)
            raise
        if request.script_content:  # Not before: nobody shall wait for this.
            keep_inline_code(self._autosaved, execution, request, ready.placed.program.header_source)
        return execution

    def _make_ready(self, principal: Principal, request: ExecutionRequest) -> "Execution | _Ready":
        """Check a request and put its source into a folder; or return the execution that it repeats."""
        if request.sandboxed:
            self._sandboxes()
            check_for_sandbox(request)
        checked = check_request(request, self._limits, self._directory)
        if checked.request.request_id is not None:
            known = self._store.by_request(principal.key, checked.request.request_id)
            if known is not None:
                return known if known.ended else self._settler.settle(known)
        self._require_capacity(principal)
        measured = request.harness is not None and request.harness.instructions is not None
        env = self._child_environment(checked, measured=measured)
        execution_id = secrets.token_hex(ID_BYTES)
        folder = self._folder.execution(execution_id)
        try:
            placed = place(folder, checked, env, self._limits.source)
        except PyexecError:
            _discard(folder)
            raise
        return _Ready(
            id=execution_id,
            owner=principal.key,
            checked=checked,
            env=env,
            folder=folder,
            lock=folder / LOCK,
            placed=placed,
        )

    def _companions(self, main: _Ready) -> list[tuple[_Ready, RunPlan]]:
        """Do the same for the programs that its harness runs besides, which are parts of the same execution."""
        found: list[tuple[_Ready, RunPlan]] = []
        harness = main.checked.request.harness or Harness()
        for number, request in enumerate(harness.companions, 1):
            checked = check_request(request, self._limits, self._directory)
            folder = companion_folder(main.folder, number)
            env = self._child_environment(checked, measured=True)
            placed = place(folder, checked, env, self._limits.source)
            ready = replace(main, checked=checked, env=env, folder=folder, placed=placed)
            plan = self._plan(ready)
            if plan.prepare is None:
                write_answer(folder, _answer(plan))
            found.append((ready, plan))
        return found

    def _require_capacity(self, principal: Principal) -> None:
        self._folder.require_room(self._limits.free_disk)
        waiting = self._store.count_active(principal.key)
        if waiting >= self._limits.queued:  # Some may have ended since somebody last looked.
            waiting = sum(not execution.ended for execution in self._settler.settle_active(principal.key))
        if waiting >= self._limits.queued:
            raise QueueFullError(
                f"{waiting} executions are waiting or running; at most {self._limits.queued} may.",
                hint="Wait for some to end, or cancel them.",
            )

    def _child_environment(self, checked: CheckedRequest, *, measured: bool) -> dict[str, str]:
        env = child_environment(self._environ, checked.env_file, checked.request.env_vars)
        # A pipe makes Python hold back what it prints; who reads along wants each line now. What is measured runs as it
        # would by itself.
        if not measured:
            env.setdefault("PYTHONUNBUFFERED", "1")
        return env

    def _sandboxes(self) -> Sandboxing:
        if self._sandboxing is None:
            raise WallUnavailableError(
                "There are no sandboxes on this machine, because they need Linux.",
                hint="With PYEXEC_WALL=host code runs without one, as you.",
            )
        return self._sandboxing

    def _plan(self, ready: "_Ready") -> RunPlan:
        request = ready.checked.request
        if request.sandboxed:
            return self._sandboxes().plan(ready.folder, ready.lock, ready.owner)
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
            _put_first(ready.env, "PATH", plan.first_on_path)
        return plan

    def _start(
        self, execution: Execution, ready: "_Ready", plan: RunPlan, companions: "list[tuple[_Ready, RunPlan]]"
    ) -> None:
        queue = self._folder.queue(execution.owner)
        write_descriptor(ready.folder, execution)
        if (plan.prepare is None or plan.prepare.only_tools) and (
            plan.environment is not None or execution.dependencies is not None
        ):
            write_answer(ready.folder, _answer(plan))
        held = claim(ready.folder, queue, execution.id)
        try:
            self._store.add(execution)
            self._wall_for(ready).launch(self._launch(ready, plan, companions, queue, held))
        except PyexecError:
            self._store.forget(execution.owner, execution.id)
            raise
        finally:
            held.release()

    def _wall_for(self, ready: "_Ready") -> Wall:
        return self._sandboxes().wall if ready.checked.request.sandboxed else self._wall

    def _build_environment(self, ready: "_Ready") -> Mapping[str, str]:
        """Return the variables that what prepares it is run with; a caller of sandboxes has no say in these."""
        if ready.checked.request.sandboxed:
            return self._sandboxes().environments.build_environ
        return {**ready.env, **patience(ready.env)}

    def _launch(
        self, ready: "_Ready", plan: RunPlan, companions: "list[tuple[_Ready, RunPlan]]", queue: Path, held: Claim
    ) -> Launch:
        half = self._limits.kept_output // 2
        harness = ready.placed.harness or Harness()
        programs = [(ready, plan), *companions]
        instructions = told(harness, ready.folder, [_planned(*one) for one in programs])
        return Launch(
            execution_id=ready.id,
            folder=ready.folder,
            queue=queue,
            entry=held.entry,
            slots=self._limits.concurrent,
            lock_fd=held.lock_fd,
            argv=framed(plan.argv, harness),
            python_at=len(harness.before),
            guest=_turn(ready) if harness.guest else None,
            prepare=tuple(
                Preparing(argv=planned.prepare.argv, env=self._build_environment(one), stdin=planned.prepare.stdin)
                for one, planned in programs
                if planned.prepare is not None
            ),
            prepare_timeout=self._limits.prepare_timeout,
            cwd=str(ready.checked.directory),
            env={} if ready.checked.request.sandboxed else ready.env,
            stdin=ready.checked.request.stdin if instructions is None else instructions,
            timeout=ready.checked.request.timeout_seconds,
            head_bytes=half,
            tail_bytes=self._limits.kept_output - half,
        )


def _new_record(principal: Principal, ready: _Ready, plan: RunPlan) -> Execution:
    checked, program = ready.checked, ready.placed.program
    request = checked.request
    kept = () if program.result is None else (_kept(ready.id, program.result),)
    return Execution(
        id=ready.id,
        owner=principal.key,
        state="pending",
        kind="notebook" if program.tools and request.kind == "script" else request.kind,
        label=None if request.label is None else legible(request.label),
        request_id=request.request_id,
        directory=DIRECTORY if request.sandboxed else legible(str(checked.directory)),
        source=source_of(checked),
        strategy=plan.strategy,
        python=legible(plan.python),
        python_version=plan.python_version,
        notes=(*plan.notes, *kept),
        dependencies=None if request.dependencies is None else tuple(masked(one) for one in request.dependencies),
        timeout_seconds=request.timeout_seconds,
        stream=request.stream,
        created_at=time.time(),
    )


def _answer(plan: RunPlan) -> Answer:
    """Return what a run without preparation would have been told by it."""
    return Answer(
        digest=plan.environment.digest if plan.environment else None,
        python_version=plan.python_version,
        packages=plan.packages,
    )


def _planned(ready: _Ready, plan: RunPlan) -> PlannedProgram:
    return PlannedProgram(
        plan=plan,
        env=ready.env,
        directory=ready.checked.directory,
        folder=ready.folder,
        stdin=ready.checked.request.stdin,
    )


def _turn(ready: _Ready) -> dict[str, object]:
    """Return what the guest is asked for; its text on stderr is for those who read no more than the streams."""
    if ready.checked.request.sandboxed:
        return turn_for_sandbox(ready.checked.request)
    return {"path": str(ready.placed.script), "stdin": ready.checked.request.stdin is not None, "tell": True}


def _kept(execution_id: str, name: str) -> str:
    return f"With its outputs it is kept as job-file://{execution_id}/{name}."


def _put_first(env: dict[str, str], name: str, folder: Path) -> None:
    env[name] = os.pathsep.join(path for path in (str(folder), env.get(name, "")) if path)


def _discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
