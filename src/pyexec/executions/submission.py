"""From a request to an execution that somebody guards."""

import secrets
import shutil
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from anyio.to_thread import run_sync

from pyexec.domain.errors import (
    KeeperUnavailableError,
    PyexecError,
    QueueFullError,
    RecordsUnavailableError,
    StateUnusableError,
    WallUnavailableError,
)
from pyexec.domain.executions import Execution, ExecutionRequest, Harness
from pyexec.domain.limits import ExecutionLimits
from pyexec.domain.principals import Principal
from pyexec.environments.asking import RunPlan
from pyexec.environments.headers import HEADER_BEGINS
from pyexec.environments.orders import ANSWER, Answer, answer_text, write_answer
from pyexec.environments.variables import child_environment
from pyexec.executions.harnesses import companion_folder
from pyexec.executions.keeping import Autosaving
from pyexec.executions.launching import Planned, answer_of, launch_of, new_record
from pyexec.executions.observing import ExecutionObserver
from pyexec.executions.placing import CODE, foreseen, place, source_bytes
from pyexec.executions.recovery import ID_BYTES
from pyexec.executions.requests import CheckedRequest, check_request, check_values
from pyexec.executions.settling import Settler
from pyexec.executions.submitted import Submitted
from pyexec.executions.ways import Ready, Way
from pyexec.sandbox.claims import claim, ids_in
from pyexec.sandbox.handover import give_files, has_begun
from pyexec.sandbox.keepers import KeeperConnection
from pyexec.sandbox.ports import Line
from pyexec.sessions.directory import Found, waiting_in
from pyexec.storage.descriptors import DESCRIPTOR, descriptor, write_descriptor
from pyexec.storage.executions import DuplicateRequestError, ExecutionStore
from pyexec.storage.packed import is_there
from pyexec.storage.state_folder import StateFolder

END_SECONDS = 15.0
MOST_AT_ONCE = 64 * 1024
"""A turn with more characters of code, input and variables is handed over as what may have to wait."""


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
        autosaving: Autosaving,
        limits: ExecutionLimits,
        environ: Mapping[str, str],
        directory: Path,
        observer: ExecutionObserver | None,
    ) -> None:
        self._folder = folder
        self._store = store
        self._settler = settler
        self._on_this_machine = on_this_machine
        self._in_sandboxes = in_sandboxes
        self._autosaving = autosaving
        self._limits = limits
        self._environ = environ
        self._directory = directory
        self._observer = observer

    async def submit(self, principal: Principal, request: ExecutionRequest) -> Submitted:
        """Start an execution, or put it in line; it is guarded, and survives this process, when this returns.

        What is returned is the caller's to close. A repeated `request_id` starts nothing and returns the execution of
        the first call.

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
            asked = self._ask_in_session(principal, request)
            found = asked or await run_sync(self._submit, principal, request)
            return found if isinstance(found, Submitted) else await self._begun(found, principal, request)
        except DuplicateRequestError:  # The same call, made twice at once: the other one was first.
            return await self.submit(principal, request)

    def _submit(self, principal: Principal, request: ExecutionRequest) -> "Submitted | _Asked":
        found = self._submit_unobserved(principal, request)
        if isinstance(found, Submitted):
            self._observe(principal, found, request)
        return found

    def _observe(self, principal: Principal, submitted: Submitted, request: ExecutionRequest) -> None:
        if self._observer is not None:
            self._observer.submitted(principal, submitted.execution, request)

    def _submit_unobserved(self, principal: Principal, request: ExecutionRequest) -> "Submitted | _Asked":
        way = self._way(request)
        way.check(request)
        checked = check_request(request, self._limits, self._directory)
        if checked.request.request_id is not None:
            known = self._store.by_request(principal.key, checked.request.request_id)
            if known is not None and not self._was_withdrawn(known):
                return Submitted(known if known.ended else self._settler.settle(known))
        self._require_capacity(principal.key)
        session = way.remembered(principal.key, checked.request) or way.enter(principal.key, checked.request)
        ready = self._make_ready(principal, checked, session)
        may = may_begin(checked.request) and (session is None or session.session.state == "live")
        return (self._ask(ready, way, may_wait=True) if may else None) or self._hand_over(ready, way)

    def _way(self, request: ExecutionRequest) -> Way:
        if not request.sandboxed:
            return self._on_this_machine
        if self._in_sandboxes is None:
            raise WallUnavailableError(
                "There are no sandboxes on this machine, because they need Linux.",
                hint="With PYEXEC_WALL=host code runs without one, as you.",
            )
        return self._in_sandboxes

    def _make_ready(self, principal: Principal, checked: CheckedRequest, session: Found | None) -> Ready:
        execution_id = secrets.token_hex(ID_BYTES)
        folder = self._folder.execution(execution_id)
        return Ready(
            id=execution_id,
            owner=principal.key,
            checked=checked,
            env=self._own_environment(checked),
            folder=folder,
            placed=foreseen(checked),
            session=session,
        )

    def _was_withdrawn(self, known: Execution) -> bool:
        """Remove the record of one that was refused, where the database kept it though it could not say so.

        Such a one has no folder, and never ran; folders of others go after their records.
        """
        if known.started_at is not None or is_there(self._folder.execution(known.id)):
            return False
        self._store.forget(known.owner, known.id)
        return True

    # -- where it need not wait ------------------------------------------------------------------------------------

    def _ask_in_session(self, principal: Principal, request: ExecutionRequest) -> "_Asked | None":
        """Ask for a turn in a session that is known to live, which takes no look at the disk, and so no thread.

        None where that cannot be asked so. What is looked at else before something begins, its keeper looks at.
        """
        way = self._in_sandboxes
        if way is None or request.session_id is None or not self._store.is_at_hand or not may_begin(request):
            return None
        session = way.remembered(principal.key, request)
        if session is None:
            return None
        way.check(request)
        check_values(request, self._limits)
        checked = CheckedRequest(request=request, directory=self._directory, script=None, env_file=None)
        return self._ask(self._make_ready(principal, checked, session), way, may_wait=False)

    def _ask(self, ready: Ready, way: Way, *, may_wait: bool) -> "_Asked | None":
        """Ask for a turn that need not wait for anything; None where it has to."""
        plan = way.plan(ready)
        if plan.prepare is not None or plan.package_folder is not None:
            return None
        lines = tuple(Line(folder=folder, entry=None, slots=slots) for folder, slots in self._lines_of(ready))
        keeper = way.wall.begin(launch_of(ready, plan, way, lines, self._limits, code=CODE), may_wait=may_wait)
        if keeper is None:
            return None
        try:  # The rest is done while somebody works on it.
            execution = new_record(ready, plan, way.directory(ready.checked))
            answer = answer_of(plan) if plan.environment is not None else Answer()
            files = {DESCRIPTOR: descriptor(execution)}
            give_files(keeper, files if plan.environment is None else {**files, ANSWER: answer_text(answer)})
        except BaseException:
            keeper.close()
            raise
        return _Asked(ready, way, Submitted(execution, keeper, answer))

    async def _begun(self, asked: "_Asked", principal: Principal, request: ExecutionRequest) -> Submitted:
        """Hear whether a turn that was asked for has begun; where it would have to wait, hand it over."""
        submitted, begun = asked.submitted, False
        silent: KeeperUnavailableError | None = None
        try:
            if submitted.keeper is not None:
                begun = await has_begun(submitted.keeper)
        except KeeperUnavailableError as error:
            silent = error
        except StateUnusableError:  # It has begun, and had to be ended.
            submitted.close()
            await run_sync(self._observe, principal, submitted, request)
            raise
        except BaseException:
            submitted.close()
            raise
        if begun:
            if self._observer is not None:  # Its answer is made meanwhile.
                submitted.do_meanwhile(lambda: self._observe(principal, submitted, request))
            self._note_begun(asked)
            return submitted
        submitted.close()
        return await run_sync(self._after_all, asked, silent, principal, request)

    def _after_all(
        self,
        asked: "_Asked",
        silent: KeeperUnavailableError | None,
        principal: Principal,
        request: ExecutionRequest,
    ) -> Submitted:
        submitted = self._handed_over_after_all(asked, silent)
        self._observe(principal, submitted, request)
        return submitted

    def _handed_over_after_all(self, asked: "_Asked", silent: KeeperUnavailableError | None) -> Submitted:
        ready, way, submitted = asked
        if is_there(ready.folder):  # It has begun, and its keeper was killed then, or is too busy to say so.
            self._note_begun(asked)
            return submitted
        if silent is not None:
            raise silent
        self._require_capacity(ready.owner)
        session = way.enter(ready.owner, ready.checked.request)  # It may not be as it was remembered.
        return self._hand_over(replace(ready, session=session), way)

    def _note_begun(self, asked: "_Asked") -> None:
        keeper = asked.submitted.keeper
        if keeper is None or keeper.said("ended") is None:  # Else it is noted with its end: there is no folder before.
            self._settler.note_begun(asked.submitted.execution)
        self._keep_code(asked.submitted, asked.ready)

    def _keep_code(self, submitted: Submitted, ready: Ready) -> None:
        code = ready.checked.request.script_content
        if code:
            self._autosaving.keep_soon(submitted.execution, ready.checked.request, source_bytes(code))

    def _lines_of(self, ready: Ready) -> list[tuple[Path, int]]:
        """Return the lines that an execution stands in, one after the other, and how many of each may run at once."""
        own = (self._folder.queue(ready.owner), self._limits.concurrent)
        return [own] if ready.session is None else [(ready.session.queue, 1), own]

    # -- where it may have to --------------------------------------------------------------------------------------

    def _hand_over(self, ready: Ready, way: Way) -> Submitted:
        self._require_turn(ready)
        try:
            placed = place(ready.folder, ready.checked, ready.env, self._limits.source)
            ready = replace(ready, placed=placed)
            plan = way.plan(ready)
            companions = self._companions(ready)
            execution = new_record(ready, plan, way.directory(ready.checked))
            submitted = Submitted(execution, self._start(execution, ready, plan, companions, way))
        except BaseException:
            _discard(ready.folder)
            raise
        self._keep_code(submitted, ready)
        return submitted

    def _companions(self, main: Ready) -> list[Planned]:
        """Do the same for the programs that its harness runs besides, which are parts of the same execution."""
        found: list[Planned] = []
        harness = main.checked.request.harness or Harness()
        for number, request in enumerate(harness.companions, 1):
            checked = check_request(request, self._limits, self._directory)
            folder = companion_folder(main.folder, number)
            env = self._child_environment(checked, measured=True)
            placed = place(folder, checked, env, self._limits.source)
            ready = replace(main, checked=checked, env=env, folder=folder, placed=placed)
            plan = self._on_this_machine.plan(ready)
            if plan.prepare is None:
                write_answer(folder, answer_of(plan))
            found.append((ready, plan))
        return found

    def _require_capacity(self, owner: str) -> None:
        self._folder.require_room(self._limits.free_disk)
        self._store.require_reachable()
        # Asking the index takes longer than all else here. Who has left the line has ended, but for those that wait for
        # their session; see `_require_turn`.
        if len(ids_in(self._folder.queue(owner))) >= self._limits.queued:
            self._require_fewer(owner)

    def _require_turn(self, ready: Ready) -> None:
        """See that one may wait for its turn in a session, where it has to: many can, in many sessions."""
        if ready.session is not None and waiting_in(ready.session.folder):
            self._require_fewer(ready.owner)

    def _require_fewer(self, owner: str) -> None:
        waiting = self._store.count_active(owner)
        if waiting >= self._limits.queued:  # Some may have ended since somebody last looked.
            waiting = sum(not execution.ended for execution in self._settler.settle_active(owner))
        if waiting >= self._limits.queued:
            raise QueueFullError(
                f"{waiting} executions are waiting or running; at most {self._limits.queued} may.",
                hint="Wait for some to end, or cancel them.",
            )

    def _own_environment(self, checked: CheckedRequest) -> dict[str, str]:
        harness = checked.request.harness
        if checked.request.sandboxed and harness is not None and harness.guest:
            return {}  # It sees no variable of this machine; see `Way.turn` for its own.
        return self._child_environment(checked, measured=harness is not None and harness.instructions is not None)

    def _child_environment(self, checked: CheckedRequest, *, measured: bool) -> dict[str, str]:
        env = child_environment(self._environ, checked.env_file, checked.request.env_vars)
        # A pipe makes Python hold back what it prints; who reads along wants each line now. What is measured runs as it
        # would by itself.
        if not measured:
            env.setdefault("PYTHONUNBUFFERED", "1")
        return env

    def _start(
        self, execution: Execution, ready: Ready, plan: RunPlan, companions: list[Planned], way: Way
    ) -> KeeperConnection:
        (folder, slots), *others = self._lines_of(ready)
        held = claim(ready.folder, folder, execution.id)  # Before it can be found: it would be taken for a lost one.
        lines = (
            Line(folder=folder, entry=held.entry, slots=slots),
            *(Line(folder=one, entry=None, slots=many) for one, many in others),
        )
        try:
            write_descriptor(ready.folder, execution)
            if (plan.prepare is None or plan.prepare.only_tools) and (
                plan.environment is not None or execution.dependencies is not None
            ):
                write_answer(ready.folder, answer_of(plan))
            launch = launch_of(ready, plan, way, lines, self._limits, companions=companions)
            if execution.request_id is not None:  # Whoever makes the same call must find it.
                self._store.add(execution)
            keeper = way.wall.launch(launch, held.lock_fd)
        except PyexecError:
            with suppress(RecordsUnavailableError):  # Then it goes when the call is made again.
                self._store.forget(execution.owner, execution.id)
            raise
        finally:
            held.release()
        if execution.request_id is None:  # It runs while this is written.
            try:
                self._store.add(execution)
            except PyexecError:
                with closing(keeper), suppress(OSError):
                    keeper.stop("kill", "It could not be noted down.")
                    while keeper.next_within(END_SECONDS) is not None:
                        continue  # As long as it lives it writes into the folder, which is removed now.
                raise
        return keeper


class _Asked(NamedTuple):
    """A turn that a keeper has been asked for."""

    ready: Ready
    way: Way
    submitted: Submitted


def may_begin(request: ExecutionRequest) -> bool:
    """Tell whether something may be a turn that need not wait: a cell, and nothing has to be put together for it."""
    return (
        request.sandboxed
        and request.harness is not None
        and request.harness.guest
        and request.request_id is None
        and not request.dependencies
        and HEADER_BEGINS not in (request.script_content or "")
        and _length(request) <= MOST_AT_ONCE
    )


def _length(request: ExecutionRequest) -> int:
    variables = sum(len(name) + len(value) for name, value in request.env_vars.items())
    return len(request.script_content or "") + len(request.stdin or "") + variables


def _discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
