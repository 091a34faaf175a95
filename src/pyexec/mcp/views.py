"""From records to structured results."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyexec.domain.executions import Execution, ExecutionRequest, Outcome
from pyexec.domain.progress import Progress, make_progress
from pyexec.environments.credentials import masked
from pyexec.executions.advice import advice_for, error_of
from pyexec.mcp import results

if TYPE_CHECKING:
    # At run time it would bring in storage, and with it SQLAlchemy, before the client has had its first answer.
    from pyexec.environments.orders import Answer
    from pyexec.environments.service import EnvironmentEntry, EnvironmentLock
    from pyexec.executions.service import Reading

_SO_MANY = re.compile(r"(\d+) of (\d+)")
TIMEOUT_MARK = "[TIMEOUT]"
SMART_ASYNC = "smart_async"


def run_result(reading: "Reading", now: float, environment: "Answer") -> results.RunResult:
    """Return the result of a run tool."""
    return results.RunResult(**run_fields(reading, now, environment))


def run_fields(reading: "Reading", now: float, environment: "Answer") -> dict[str, Any]:
    """Return the fields of the result of a run tool."""
    execution, output = reading.execution, reading.output
    outcome = execution.outcome
    stderr = _stderr(reading)
    return {
        "job_id": execution.id,
        "status": execution.state,
        "stdout": output.stdout.text,
        "stderr": stderr,
        "exit_code": outcome.exit_code if outcome else None,
        "execution_strategy": execution.strategy,
        "elapsed_seconds": round(execution.elapsed(now), 4),
        "signal": outcome.signal if outcome else None,
        "stopped_by": outcome.stopped_by if outcome else None,
        "error": error_of(execution, stderr),
        "advice": advice_for(execution, stderr),
        "truncated": output.truncated,
        "stdout_bytes": output.stdout.total,
        "stderr_bytes": output.stderr.total,
        "next_cursor": output.next_cursor.encode(),
        "leftover_processes": _leftovers(outcome),
        "resolved_dependencies": None if environment.packages is None else list(environment.packages),
        "python_version_used": environment.python_version or execution.python_version,
        "environment_id": environment.digest,
        "notes": [*execution.notes, *environment.notes] or None,
    }


def started(run: results.RunResult, request: ExecutionRequest) -> results.Started:
    """Return the answer of a tool that does not wait: what is known by now, and else what was asked for."""
    asked = None if request.dependencies is None else [masked(one) for one in request.dependencies]
    return results.Started(
        job_id=run.job_id,
        status="started",
        execution_strategy=run.execution_strategy,
        python_version_used=run.python_version_used or request.python_version,
        resolved_dependencies=run.resolved_dependencies or asked,
        next_cursor=run.next_cursor,
        notes=run.notes,
    )


def job_output(reading: "Reading", now: float, environment: "Answer") -> results.JobOutput:
    """Return the result of `get_job_output`."""
    execution, output = reading.execution, reading.output
    outcome = execution.outcome
    return results.JobOutput(
        job_id=execution.id,
        status="finished" if execution.ended else "running",
        state=execution.state,
        stdout=output.stdout.text,
        stderr=_stderr(reading),
        exit_code=outcome.exit_code if outcome else None,
        elapsed_seconds=round(execution.elapsed(now), 4),
        signal=outcome.signal if outcome else None,
        truncated=output.truncated,
        gap_bytes=_gap(reading),
        stdout_bytes=output.stdout.total,
        stderr_bytes=output.stderr.total,
        next_cursor=output.next_cursor.encode(),
        resolved_dependencies=None if environment.packages is None else list(environment.packages),
        python_version_used=environment.python_version or execution.python_version,
        environment_id=environment.digest,
        notes=[*execution.notes, *environment.notes] or None,
        error=error_of(execution, output.stderr.text),
    )


def job_status(reading: "Reading", now: float, progress: Progress | None, returned: Any) -> results.JobStatus:
    """Return the result of `py_job_status`; `returned` is what work inside a server came to."""
    output = reading.output
    seen = job(reading.execution, now, output.stderr.text, progress)
    told = {"new_stdout": output.stdout.text, "new_stderr": output.stderr.text}
    if reading.execution.kind == SMART_ASYNC:
        told["result"] = returned
    return results.JobStatus(
        job=seen.model_copy(update=told),
        next_cursor=output.next_cursor.encode(),
        truncated=output.truncated,
        gap_bytes=_gap(reading),
    )


def job(execution: Execution, now: float, stderr: str = "", progress: Progress | None = None) -> results.Job:
    """Return one job's record."""
    outcome = execution.outcome
    return results.Job(
        id=execution.id,
        label=execution.label,
        status=execution.state,
        kind=execution.kind,
        directory=execution.directory,
        source=execution.source,
        created_at=iso_time(execution.created_at),
        started_at=iso_time(execution.started_at) if execution.started_at else None,
        completed_at=iso_time(outcome.ended_at) if outcome else None,
        elapsed_seconds=round(execution.elapsed(now), 4),
        progress=_progress(progress),
        result=_job_result(execution, outcome, now) if outcome and execution.kind != SMART_ASYNC else None,
        error=error_of(execution, stderr),
    )


def running_job(execution: Execution, now: float, chunks: dict[str, int]) -> results.RunningJob:
    """Return one row of `list_running_jobs`."""
    return results.RunningJob(
        job_id=execution.id,
        running=execution.state == "running",
        exit_code=execution.outcome.exit_code if execution.outcome else None,
        pid=execution.pid,
        elapsed_seconds=round(execution.elapsed(now), 4),
        stream=execution.stream,
        stdout_chunks=chunks.get("stdout", 0),
        stderr_chunks=chunks.get("stderr", 0),
        status=execution.state,
        label=execution.label,
    )


def iso_time(seconds: float) -> str:
    """Return a time as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _job_result(execution: Execution, outcome: Outcome, now: float) -> results.JobResult:
    return results.JobResult(
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        stopped_by=outcome.stopped_by,
        elapsed_seconds=round(execution.elapsed(now), 4),
        cpu_seconds=round(outcome.user_cpu_seconds + outcome.system_cpu_seconds, 4),
        peak_rss_mb=round(outcome.peak_rss_bytes / 2**20, 2),
        stdout_bytes=outcome.stdout_bytes,
        stderr_bytes=outcome.stderr_bytes,
        leftover_processes=_leftovers(outcome),
    )


def _leftovers(outcome: Outcome | None) -> list[results.LeftoverProcess] | None:
    if outcome is None or not outcome.leftover_processes:
        return None
    return [results.LeftoverProcess(pid=left.pid, command=left.command) for left in outcome.leftover_processes]


def _stderr(reading: "Reading") -> str:
    """Return what it wrote to stderr; or, where it was not run, what was said by the tools that prepare it."""
    outcome = reading.execution.outcome
    return _with_mark(reading.execution, reading.output.stderr.text) or (outcome and outcome.detail) or ""


def _with_mark(execution: Execution, stderr: str) -> str:
    if execution.state != "timed_out":
        return stderr
    return f"{stderr}\n{TIMEOUT_MARK}" if stderr and not stderr.endswith("\n") else f"{stderr}{TIMEOUT_MARK}"


def _gap(reading: "Reading") -> int | None:
    return (reading.output.stdout.gap + reading.output.stderr.gap) or None


def environments(entries: "list[EnvironmentEntry]") -> results.Environments:
    """Return the result of `list_environments`."""
    rows = [_environment(entry) for entry in entries]
    return results.Environments(environments=rows, total_mb=round(sum(row.size_mb for row in rows), 2))


def environment_lock(lock: "EnvironmentLock") -> results.EnvironmentLocked:
    """Return the result of `lock_environment`."""
    return results.EnvironmentLocked(
        environment_id=lock.id,
        python_version=lock.python_version,
        lock=lock.text,
        usage=f"Save it as requirements.lock; then: uv venv --python {lock.python_version} && "
        "uv pip sync requirements.lock",
    )


def environment_created(name: str, done: results.RunResult) -> results.EnvironmentCreated:
    """Return the result of `create_environment`, from that of the execution that made it."""
    return results.EnvironmentCreated(
        name=name,
        job_id=done.job_id,
        status=done.status,
        environment_id=done.environment_id,
        python_version=done.python_version_used,
        packages=done.resolved_dependencies,
        elapsed_seconds=done.elapsed_seconds,
        detail=done.stderr or None,
        notes=done.notes,
        error=done.error,
    )


def environment_removed(entry: "EnvironmentEntry") -> results.EnvironmentRemoved:
    """Return the result of `remove_environment`."""
    size = entry.environment.size_bytes if entry.environment else 0
    return results.EnvironmentRemoved(environment_id=entry.id, names=list(entry.names), freed_mb=_megabytes(size))


def _environment(entry: "EnvironmentEntry") -> results.EnvironmentRow:
    made = entry.environment
    return results.EnvironmentRow(
        id=entry.id,
        names=list(entry.names),
        python_version=entry.python_version,
        packages=list(made.packages) if made else [],
        size_mb=_megabytes(made.size_bytes if made else 0),
        created_at=iso_time(made.created_at) if made else None,
        last_used_at=iso_time(entry.last_used_at) if entry.last_used_at else None,
        in_use=bool(entry.in_use_by),
    )


def preparation_progress(doing: str | None) -> Progress | None:
    """Read a line such as "installing 12 of 38"."""
    if doing is None:
        return None
    found = _SO_MANY.search(doing)
    current, total = (float(number) for number in found.groups()) if found else (0.0, None)
    return make_progress(current, total, doing)


def _progress(progress: Progress | None) -> results.Progress | None:
    if progress is None:
        return None
    return results.Progress(current=progress.current, total=progress.total, message=progress.message)


def _megabytes(size: int) -> float:
    return round(size / 2**20, 2)
