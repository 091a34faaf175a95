"""From a request to an execution that somebody guards."""

import secrets
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from anyio.to_thread import run_sync

from pyexec.domain.errors import PyexecError, QueueFullError, RecordsUnavailableError, WallUnavailableError
from pyexec.domain.executions import Execution, ExecutionRequest, Harness
from pyexec.domain.limits import ExecutionLimits
from pyexec.domain.principals import Principal
from pyexec.domain.text import legible
from pyexec.environments.asking import RunPlan
from pyexec.environments.credentials import masked
from pyexec.environments.orders import Answer, write_answer
from pyexec.environments.variables import child_environment
from pyexec.executions.harnesses import PlannedProgram, companion_folder, framed, told
from pyexec.executions.keeping import keep_inline_code
from pyexec.executions.placing import place, source_of
from pyexec.executions.requests import CheckedRequest, check_request
from pyexec.executions.settling import Settler
from pyexec.executions.ways import Ready, Way
from pyexec.sandbox.claims import LOCK, claim, ids_in
from pyexec.sandbox.keepers import kill
from pyexec.sandbox.ports import Launch, Line, Preparing
from pyexec.scripts.autosaved import AutosavedScripts
from pyexec.storage.descriptors import write_descriptor
from pyexec.storage.executions import DuplicateRequestError, ExecutionStore
from pyexec.storage.state_folder import StateFolder

ID_BYTES = 16


class Submitter:
    """Checks what is asked for, decides how it is run, and hands it to a keeper."""

    def __init__(
        self,
        *,
        folder: StateFolder,
        store: ExecutionStore,
        settler: Settler,
        on_this_machine: Way,
        in_sandboxes: Way | None,
        autosaved: AutosavedScripts,
        limits: ExecutionLimits,
        environ: Mapping[str, str],
        directory: Path,
    ) -> None:
        self._folder = folder
        self._store = store
        self._settler = settler
        self._on_this_machine = on_this_machine
        self._in_sandboxes = in_sandboxes
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
            SessionEndedError: The interpreter of its session has ended.
            SessionBusyError: Too many wait for their turn in its session.
            UvNotFoundError: uv is needed and not there.
            InterpreterNotFoundError: No Python fits.
            QueueFullError: Too many are waiting.
            DiskFullError: The disk is nearly full.
            KeeperUnavailableError: No keeper could be started.
            RecordsUnavailableError: The database server does not answer.
        """
        try:
            return await run_sync(self._submit, principal, request)
        except DuplicateRequestError:  # The same call, made twice at once: the other one was first.
            return await self.submit(principal, request)

    def _submit(self, principal: Principal, request: ExecutionRequest) -> Execution:
        way = self._way(request)
        ready = self._make_ready(principal, request, way)
        if isinstance(ready, Execution):
            return ready
        try:
            plan = way.plan(ready)
            companions = self._companions(ready)
            execution = _new_record(principal, ready, plan, way.directory(ready.checked))
            self._start(execution, ready, plan, companions, way)
        except BaseException:
            _discard(ready.folder)
            raise
        if request.script_content:  # Not before: nobody shall wait for this.
            keep_inline_code(self._autosaved, execution, request, ready.placed.program.header_source)
        return execution

    def _way(self, request: ExecutionRequest) -> Way:
        if not request.sandboxed:
            return self._on_this_machine
        if self._in_sandboxes is None:
            raise WallUnavailableError(
                "There are no sandboxes on this machine, because they need Linux.",
                hint="With PYEXEC_WALL=host code runs without one, as you.",
            )
        return self._in_sandboxes

    def _make_ready(self, principal: Principal, request: ExecutionRequest, way: Way) -> Execution | Ready:
        """Check a request and put its source into a folder; or return the execution that it repeats."""
        way.check(request)
        checked = check_request(request, self._limits, self._directory)
        if checked.request.request_id is not None:
            known = self._store.by_request(principal.key, checked.request.request_id)
            if known is not None and not self._was_withdrawn(known):
                return known if known.ended else self._settler.settle(known)
        self._require_capacity(principal)
        session = way.enter(principal.key, request)
        measured = request.harness is not None and request.harness.instructions is not None
        env = self._child_environment(checked, measured=measured)
        execution_id = secrets.token_hex(ID_BYTES)
        folder = self._folder.execution(execution_id)
        try:
            placed = place(folder, checked, env, self._limits.source)
        except PyexecError:
            _discard(folder)
            raise
        return Ready(
            id=execution_id,
            owner=principal.key,
            checked=checked,
            env=env,
            folder=folder,
            lock=folder / LOCK,
            placed=placed,
            session=session,
        )

    def _was_withdrawn(self, known: Execution) -> bool:
        """Remove the record of one that was refused, where the database kept it though it could not say so.

        Such a one has no folder, and never ran; folders of others go after their records.
        """
        if known.started_at is not None or self._folder.execution(known.id).exists():
            return False
        self._store.forget(known.owner, known.id)
        return True

    def _companions(self, main: Ready) -> list[tuple[Ready, RunPlan]]:
        """Do the same for the programs that its harness runs besides, which are parts of the same execution."""
        found: list[tuple[Ready, RunPlan]] = []
        harness = main.checked.request.harness or Harness()
        for number, request in enumerate(harness.companions, 1):
            checked = check_request(request, self._limits, self._directory)
            folder = companion_folder(main.folder, number)
            env = self._child_environment(checked, measured=True)
            placed = place(folder, checked, env, self._limits.source)
            ready = replace(main, checked=checked, env=env, folder=folder, placed=placed)
            plan = self._on_this_machine.plan(ready)
            if plan.prepare is None:
                write_answer(folder, _answer(plan))
            found.append((ready, plan))
        return found

    def _require_capacity(self, principal: Principal) -> None:
        self._folder.require_room(self._limits.free_disk)
        self._store.require_reachable()
        # Asking the index takes longer than all else here. Who has left the line has ended, but for those that wait for
        # their session, which are few (`SessionLimits.waiting`) and have a bound of their own.
        if len(ids_in(self._folder.queue(principal.key))) < self._limits.queued:
            return
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

    def _start(
        self, execution: Execution, ready: Ready, plan: RunPlan, companions: list[tuple[Ready, RunPlan]], way: Way
    ) -> None:
        write_descriptor(ready.folder, execution)
        if (plan.prepare is None or plan.prepare.only_tools) and (
            plan.environment is not None or execution.dependencies is not None
        ):
            write_answer(ready.folder, _answer(plan))
        queue = self._folder.queue(execution.owner)
        held = claim(ready.folder, ready.session.folder.queue if ready.session else queue, execution.id)
        lines = (Line(folder=queue, entry=None if ready.session else held.entry, slots=self._limits.concurrent),)
        if ready.session:
            lines = (Line(folder=ready.session.folder.queue, entry=held.entry, slots=1), *lines)
        launch = self._launch(ready, plan, companions, way, lines, held.lock_fd)
        try:
            if execution.request_id is not None:  # Whoever makes the same call must find it.
                self._store.add(execution)
            way.wall.launch(launch)
        except PyexecError:
            if execution.request_id is not None:
                with suppress(RecordsUnavailableError):  # Then it goes when the call is made again.
                    self._store.forget(execution.owner, execution.id)
            raise
        finally:
            held.release()
        if execution.request_id is None:  # It runs while this is written.
            try:
                self._store.add(execution)
            except PyexecError:
                kill(ready.folder, "It could not be noted down.")
                raise

    def _launch(
        self,
        ready: Ready,
        plan: RunPlan,
        companions: list[tuple[Ready, RunPlan]],
        way: Way,
        lines: tuple[Line, ...],
        lock_fd: int,
    ) -> Launch:
        half = self._limits.kept_output // 2
        harness = ready.placed.harness or Harness()
        programs = [(ready, plan), *companions]
        instructions = told(harness, ready.folder, [_planned(*one) for one in programs])
        session = ready.session
        return Launch(
            execution_id=ready.id,
            owner=ready.owner,
            folder=ready.folder,
            lines=lines,
            session=None if session is None else {"folder": str(session.folder.path)},
            keeper=None if session is None or session.session.keeper is None else Path(session.session.keeper),
            folders=way.folders(ready),
            usual=plan.usual,
            lock_fd=lock_fd,
            argv=framed(plan.argv, harness),
            python_at=len(harness.before),
            guest=way.turn(ready) if harness.guest or ready.checked.request.sandboxed else None,
            prepare=tuple(
                Preparing(argv=planned.prepare.argv, env=way.build_environ(one), stdin=planned.prepare.stdin)
                for one, planned in programs
                if planned.prepare is not None
            ),
            prepare_timeout=self._limits.prepare_timeout,
            cwd=str(ready.checked.directory),
            env=way.environ(ready),
            stdin=ready.checked.request.stdin if instructions is None else instructions,
            timeout=ready.checked.request.timeout_seconds,
            head_bytes=half,
            tail_bytes=self._limits.kept_output - half,
        )


def _new_record(principal: Principal, ready: Ready, plan: RunPlan, directory: str) -> Execution:
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
        directory=directory,
        source=source_of(checked),
        strategy=plan.strategy,
        python=legible(plan.python),
        python_version=plan.python_version,
        notes=(*plan.notes, *kept),
        dependencies=None if request.dependencies is None else tuple(masked(one) for one in request.dependencies),
        timeout_seconds=request.timeout_seconds,
        stream=request.stream,
        session=ready.session.session.id if ready.session else None,
        created_at=time.time(),
    )


def _answer(plan: RunPlan) -> Answer:
    """Return what a run without preparation would have been told by it."""
    return Answer(
        digest=plan.environment.digest if plan.environment else None,
        python_version=plan.python_version,
        packages=plan.packages,
        package_folder=str(plan.package_folder) if plan.package_folder else None,
    )


def _planned(ready: Ready, plan: RunPlan) -> PlannedProgram:
    return PlannedProgram(
        plan=plan,
        env=ready.env,
        directory=ready.checked.directory,
        folder=ready.folder,
        stdin=ready.checked.request.stdin,
    )


def _kept(execution_id: str, name: str) -> str:
    return f"With its outputs it is kept as job-file://{execution_id}/{name}."


def _discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
