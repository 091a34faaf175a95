"""`pyexec jobs`."""

import json
import time
from dataclasses import asdict
from typing import get_args

import click

from pyexec.app.services import Services
from pyexec.cli import session
from pyexec.domain.executions import Execution, State
from pyexec.domain.principals import Principal
from pyexec.domain.progress import Progress
from pyexec.executions.advice import error_of

SHORT_ID = 12


@click.group("jobs")
def command() -> None:
    """List, show, follow, cancel and remove jobs.

    A JOB is named by its id, or by a beginning of it that only one job has.
    """


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@command.command("list")
@click.option("--status", type=click.Choice(get_args(State)), help="Only jobs in this state.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@json_option
def list_jobs(status: State | None, limit: int, *, as_json: bool) -> None:
    """List jobs, newest first."""
    states = None if status is None else (status,)
    found, total = session.run(lambda services, who: services.executions.newest(who, states=states, limit=limit))
    if as_json:
        click.echo(json.dumps({"jobs": [session.as_json(execution) for execution in found], "total": total}))
        return
    if not found:
        click.echo("No jobs.", err=True)
        return
    click.echo(f"{'JOB':{SHORT_ID}}  {'STATUS':9}  {'STARTED':19}  {'SECONDS':>9}  WHAT")
    for execution in found:
        click.echo(_row(execution))


@command.command("show")
@click.argument("job")
@json_option
def show(job: str, *, as_json: bool) -> None:
    """Show one job."""
    execution, progress = session.run(lambda services, who: _look(services, who, job))
    if as_json:
        told = None if progress is None else asdict(progress)
        click.echo(json.dumps({**session.as_json(execution), "progress": told}))
        return
    for name, value in [*_facts(execution), ("progress", progress and _progress(progress))]:
        if value not in (None, ""):
            click.echo(f"{name:12} {value}")


@command.command("logs")
@click.argument("job")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
def logs(job: str, *, follow: bool) -> None:
    """Print what a job has printed, stdout to stdout and stderr to stderr."""
    try:
        session.run(lambda services, who: _print_log(services, who, job, follow=follow))
    except BrokenPipeError:
        session.leave_broken_pipe()


@command.command("cancel")
@click.argument("job")
@click.option("--kill", is_flag=True, help="Kill at once instead of interrupting first.")
@json_option
def cancel(job: str, *, kill: bool, as_json: bool) -> None:
    """End a job with all its processes; its output is kept."""

    async def work(services: Services, principal: Principal) -> Execution:
        execution_id = await services.executions.resolve(principal, job)
        return await services.executions.stop(principal, execution_id, "kill" if kill else "cancel", "")

    execution = session.run(work)
    click.echo(json.dumps(session.as_json(execution)) if as_json else f"{execution.id} {execution.state}")


@command.command("prune")
@click.option("--keep-completed", is_flag=True, help="Spare jobs that succeeded.")
@click.option("--keep-failed", is_flag=True, help="Spare all others.")
@click.option("--max-age-hours", type=float, default=24, show_default=True, help="Only jobs that ended longer ago.")
@json_option
def prune(max_age_hours: float, *, keep_completed: bool, keep_failed: bool, as_json: bool) -> None:
    """Remove ended jobs and their output."""
    pruned = session.run(
        lambda services, who: services.retention.prune(
            who, keep_completed=keep_completed, keep_failed=keep_failed, max_age_hours=max_age_hours
        )
    )
    if as_json:
        click.echo(json.dumps({"removed": pruned.removed, "remaining": pruned.remaining}))
    else:
        click.echo(f"Removed {pruned.removed}; {pruned.remaining} remain.")


@command.command("cleanup")
@click.option("--max-age-hours", type=float, default=24, show_default=True, help="Only what is older.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@json_option
def cleanup(max_age_hours: float, *, dry_run: bool, as_json: bool) -> None:
    """Remove ended jobs, autosaved sources and files that were left lying about; say what it freed."""
    removals = session.run(
        lambda services, who: services.cleanup.clean(who, max_age_hours=max_age_hours, dry_run=dry_run)
    )
    if as_json:
        removed = [{"kind": one.kind, "count": one.count, "bytes": one.size} for one in removals]
        click.echo(json.dumps({"dry_run": dry_run, "removed": removed}))
        return
    for one in removals:
        click.echo(f"{one.kind.replace('_', ' '):18} {one.count:>7} {one.size / 2**20:>10.2f} MB")
    click.echo("Nothing was removed: a dry run." if dry_run else "Removed.")


async def _look(services: Services, principal: Principal, job: str) -> tuple[Execution, Progress | None]:
    service = services.executions
    execution = await service.get(principal, await service.resolve(principal, job))
    return execution, await service.progress_of(execution)


async def _print_log(services: Services, principal: Principal, job: str, *, follow: bool) -> None:
    execution_id = await services.executions.resolve(principal, job)
    async for piece in services.executions.follow(principal, execution_id, to_end=follow):
        session.write_piece(piece)


def _row(execution: Execution) -> str:
    started = _time(execution.started_at or execution.created_at)
    seconds = execution.elapsed(time.time())
    what = execution.label or execution.source
    return f"{execution.id[:SHORT_ID]}  {execution.state:9}  {started}  {seconds:9.2f}  {what}"


def _facts(execution: Execution) -> list[tuple[str, object]]:
    outcome = execution.outcome
    facts: list[tuple[str, object]] = [
        ("job", execution.id),
        ("label", execution.label),
        ("status", execution.state),
        ("source", execution.source),
        ("directory", execution.directory),
        ("python", execution.python),
        ("created", _time(execution.created_at)),
        ("started", _time(execution.started_at) if execution.started_at else None),
        ("seconds", f"{execution.elapsed(time.time()):.2f}"),
        ("pid", execution.pid),
    ]
    if outcome is not None:
        facts += [
            ("ended", _time(outcome.ended_at)),
            ("exit code", outcome.exit_code),
            ("signal", outcome.signal),
            ("why", error_of(execution, "")),
            ("cpu", f"{outcome.user_cpu_seconds + outcome.system_cpu_seconds:.2f} s"),
            ("peak memory", f"{outcome.peak_rss_bytes / 2**20:.0f} MB"),
            ("output", f"{outcome.stdout_bytes} bytes on stdout, {outcome.stderr_bytes} on stderr"),
        ]
    return facts


def _progress(progress: Progress) -> str:
    total = "" if progress.total is None else f" of {progress.total:.12g}"
    return f"{progress.current:.12g}{total}" + (f": {progress.message}" if progress.message else "")


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
