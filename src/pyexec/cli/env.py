"""`pyexec env`."""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import anyio
import click

from pyexec.app.services import Services
from pyexec.cli import session
from pyexec.cli.preparation import show_preparation
from pyexec.cli.secrets import warn_of_secrets
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.environments.orders import Answer
from pyexec.environments.service import EnvironmentEntry
from pyexec.executions.advice import advice_for, error_of

SHORT_ID = 12
FAILURE = 1


@click.group("env")
def command() -> None:
    """List, make, lock and remove environments.

    An ENVIRONMENT is named by its name, its id, or a beginning of the id that only one has.
    """


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@command.command("list")
@json_option
def list_environments(*, as_json: bool) -> None:
    """List environments: named ones first, then the most recently used."""
    entries = session.run(lambda services, who: services.environments.entries(who))
    if as_json:
        click.echo(json.dumps([_as_json(entry) for entry in entries]))
        return
    if not entries:
        click.echo("No environments.", err=True)
        return
    click.echo(f"{'ENVIRONMENT':{SHORT_ID}}  {'PYTHON':8}  {'MB':>7}  {'LAST USED':19}  {'IN USE':6}  WHAT")
    for entry in entries:
        click.echo(_row(entry))


@command.command("create")
@click.argument("name")
@click.argument("requirements", nargs=-1, metavar="[REQUIREMENT]...")
@click.option("-p", "--python", "python_version", metavar="VERSION", help="3.13, 3.13.2 or >=3.11.")
@click.option("-c", "--constraint", "constraints", multiple=True, metavar="REQUIREMENT", help="To stay within.")
@click.option("--index-url", metavar="URL", help="The package index to use in place of the usual one.")
@click.option("--directory", type=click.Path(path_type=Path), help="Where relative paths start.")
@json_option
def create(
    *,
    name: str,
    requirements: tuple[str, ...],
    python_version: str | None,
    constraints: tuple[str, ...],
    index_url: str | None,
    directory: Path | None,
    as_json: bool,
) -> None:
    """Make an environment called NAME; one that has the name already is replaced."""
    warn_of_secrets(index_url=index_url, texts=(*requirements, *constraints))
    request = ExecutionRequest(
        kind="environment",
        script_content="",
        python_version=python_version,
        dependencies=requirements,
        constraints=constraints,
        index_url=index_url,
        keep_as=name,
        label=f"environment {name}",
    )
    execution, answer = session.run(lambda services, who: _make(services, who, request), directory)
    if execution.state != "completed":
        click.echo(f"error: {error_of(execution, '')}", err=True)
        if execution.outcome is not None and execution.outcome.detail:
            click.echo(f"\n{execution.outcome.detail}", err=True)
        advice = advice_for(execution, "")
        if advice:
            click.echo(f"\nhint: {advice}", err=True)
        sys.exit(FAILURE)
    packages = answer.packages or ()
    if as_json:
        click.echo(json.dumps({"name": name, **asdict(answer)}))
        return
    for note in answer.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{name}: Python {answer.python_version}, {len(packages)} package{'' if len(packages) == 1 else 's'}")


@command.command("remove")
@click.argument("environment")
def remove(environment: str) -> None:
    """Remove an environment and its name; one that is in use is not removed."""
    entry = session.run(lambda services, who: services.environments.remove(who, environment))
    click.echo(f"Removed {', '.join(entry.names) or entry.id[:SHORT_ID]}.")


@command.command("lock")
@click.argument("environment")
def lock(environment: str) -> None:
    """Print the exact packages of an environment with their hashes, as a requirements file."""
    locked = session.run(lambda services, who: services.environments.lock(who, environment))
    click.echo(f"# Python {locked.python_version}; install with: uv pip sync")
    click.echo(locked.text, nl=False)


async def _make(services: Services, principal: Principal, request: ExecutionRequest) -> tuple[Execution, Answer]:
    service = services.executions
    execution = await service.submit(principal, request)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.pass_interrupts, services, principal, execution.id)
        await show_preparation(service, principal, execution.id, always=True)
        execution = await service.wait(principal, execution.id, None)
        tasks.cancel_scope.cancel()
    return execution, await service.environment_of(execution)


def _row(entry: EnvironmentEntry) -> str:
    made = entry.environment
    size = made.size_bytes / 2**20 if made else 0.0
    used = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.last_used_at)) if entry.last_used_at else "never"
    what = ", ".join(made.packages) if made else "(made again when it is used)"
    named = f"{', '.join(entry.names)}: " if entry.names else ""
    in_use = "yes" if entry.in_use_by else "no"
    return f"{entry.id[:SHORT_ID]}  {entry.python_version:8}  {size:7.1f}  {used:19}  {in_use:6}  {named}{what}"


def _as_json(entry: EnvironmentEntry) -> dict[str, object]:
    made = entry.environment
    return {
        "id": entry.id,
        "names": entry.names,
        "python_version": entry.python_version,
        "packages": made.packages if made else (),
        "size_bytes": made.size_bytes if made else 0,
        "created_at": made.created_at if made else None,
        "last_used_at": entry.last_used_at or None,
        "in_use_by": entry.in_use_by,
    }
