"""What a keeper is told of an execution, and what its record says at first."""

import time
from collections.abc import Sequence

from pyexec.domain.executions import Execution, Harness
from pyexec.domain.limits import ExecutionLimits
from pyexec.domain.text import legible
from pyexec.environments.asking import RunPlan
from pyexec.environments.credentials import masked
from pyexec.environments.orders import Answer
from pyexec.executions.harnesses import PlannedProgram, framed, told
from pyexec.executions.placing import source_of
from pyexec.executions.ways import Ready, Way
from pyexec.sandbox.ports import Launch, Line, Preparing

Planned = tuple[Ready, RunPlan]


def launch_of(
    ready: Ready,
    plan: RunPlan,
    way: Way,
    lines: tuple[Line, ...],
    limits: ExecutionLimits,
    *,
    companions: Sequence[Planned] = (),
    code: str | None = None,
) -> Launch:
    """Return what a keeper is told; see `Launch`."""
    half = limits.kept_output // 2
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
        keeper=None if session is None else session.keeper,
        folders=way.folders(ready),
        code=code,
        room=0 if code is None else limits.free_disk,
        usual=plan.usual,
        argv=framed(plan.argv, harness),
        python_at=len(harness.before),
        guest=way.turn(ready) if harness.guest or ready.checked.request.sandboxed else None,
        prepare=tuple(
            Preparing(argv=planned.prepare.argv, env=way.build_environ(one), stdin=planned.prepare.stdin)
            for one, planned in programs
            if planned.prepare is not None
        ),
        prepare_timeout=limits.prepare_timeout,
        cwd=str(ready.checked.directory),
        env=way.environ(ready),
        stdin=ready.checked.request.stdin if instructions is None else instructions,
        timeout=ready.checked.request.timeout_seconds,
        head_bytes=half,
        tail_bytes=limits.kept_output - half,
    )


def new_record(ready: Ready, plan: RunPlan, directory: str) -> Execution:
    """Return the record of an execution that is about to be handed over; `directory` is where it runs."""
    checked, program = ready.checked, ready.placed.program
    request = checked.request
    kept = () if program.result is None else (_kept(ready.id, program.result),)
    return Execution(
        id=ready.id,
        owner=ready.owner,
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


def answer_of(plan: RunPlan) -> Answer:
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
