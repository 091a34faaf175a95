"""`pyexec scripts`."""

import json
import time
from pathlib import Path
from typing import Any

import click

from pyexec.app.services import Services
from pyexec.cli import run as running
from pyexec.cli import session
from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.domain.text import legible
from pyexec.scripts.autosaved import AutosavedScript
from pyexec.scripts.drafts import Draft
from pyexec.scripts.library import SavedScript

SHOWN_AUTOSAVED = 200
SHOWN_DOCSTRING = 60
_NEVER = "never"
SAVE_EXAMPLES = """\
\b
Examples:
  pyexec scripts save report report.py --with pandas --description "Weekly report"
  pyexec scripts run report -- --week 12
"""

Listed = tuple[list[SavedScript], dict[Path, Execution], list[AutosavedScript], dict[str, Execution]]


@click.group("scripts")
def command() -> None:
    """Save, list, show, run and delete scripts.

    A script is a plain file in the state folder's scripts/, called NAME.py: edit it, put it under git. What is run
    inline is kept too, in autosaved_scripts/.
    """


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@command.command("list")
@click.option("--autosaved", is_flag=True, help="List inline code that was run, latest first.")
@json_option
def list_scripts(*, autosaved: bool, as_json: bool) -> None:
    """List the saved scripts: what they do and need, and their last run."""
    saved, last_runs, kept, last_jobs = session.run(lambda services, who: _list(services, who, autosaved=autosaved))
    if as_json:
        rows = [_saved_as_json(one, last_runs.get(one.path)) for one in saved]
        more = {"autosaved": [_kept_as_json(one, last_jobs) for one in kept]} if autosaved else {}
        click.echo(json.dumps({"scripts": rows, **more}))
        return
    if autosaved:
        _print_autosaved(kept, last_jobs)
    else:
        _print_saved(saved, last_runs)


@command.command("show")
@click.argument("name")
@click.option("--autosaved", is_flag=True, help="Look among inline code that was run.")
@json_option
def show(name: str, *, autosaved: bool, as_json: bool) -> None:
    """Print the source of a script.

    With --autosaved and --json also what is known about its runs.
    """
    path, source, sidecar = session.run(lambda services, who: _source(services, who, name, autosaved=autosaved))
    if as_json:
        more = {"sidecar": sidecar} if autosaved else {}
        click.echo(json.dumps({"name": path.stem, "path": legible(str(path)), "source": source, **more}))
    else:
        click.echo(legible(source), nl=not source.endswith("\n"))


@command.command("save", epilog=SAVE_EXAMPLES)
@click.argument("name")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--with", "dependencies", multiple=True, metavar="REQUIREMENT", help="A package that is needed; repeatable."
)
@click.option("--requires-python", metavar="RANGE", help="The versions of Python it runs on, such as '>=3.11'.")
@click.option("--description", metavar="TEXT", help="What it does; becomes its docstring.")
@click.option("--overwrite", is_flag=True, help="Replace a script of that name.")
@json_option
def save(
    *,
    name: str,
    file: Any,
    dependencies: tuple[str, ...],
    requires_python: str | None,
    description: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Save FILE (- is standard input) as a script called NAME.

    What it needs goes into its header, so that it runs anywhere.
    """
    try:
        source = file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{file.name} is not UTF-8 text (byte {error.start}).") from error
    draft = Draft(source=source, dependencies=dependencies, requires_python=requires_python, description=description)
    saved = session.run(lambda services, who: services.scripts.save(who, name, draft, overwrite=overwrite))
    click.echo(json.dumps(_saved_as_json(saved, None)) if as_json else str(saved.path))
    if saved.fault and not as_json:
        click.echo(f"note: {saved.fault}", err=True)


@command.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--timeout", type=float, default=0, metavar="SECONDS", help="End it after this long; 0: never.")
@click.option(
    "--env",
    multiple=True,
    callback=running.variables,
    metavar="NAME=VALUE",
    help="An environment variable; repeatable.",
)
@click.option("--env-file", metavar="FILE", help="A .env file.")
@click.option("--directory", type=click.Path(path_type=Path), help="Where to run; default: the current directory.")
@click.option("-i", "--stdin", "pass_stdin", is_flag=True, help="Pass standard input on, read to its end first.")
@click.option("--label", metavar="TEXT", help="A name for the job lists; default: the script's.")
@click.option("-d", "--detach", is_flag=True, help="Do not wait: print the job's id.")
@click.option("--json", "as_json", is_flag=True, help="With --detach: print the job's record as JSON.")
@click.argument("name")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(
    *,
    name: str,
    args: tuple[str, ...],
    timeout: float,
    env: dict[str, str],
    env_file: str | None,
    directory: Path | None,
    pass_stdin: bool,
    label: str | None,
    detach: bool,
    as_json: bool,
) -> None:
    """Run a saved script with what its header asks for, and exit with its exit status."""
    stdin = running.read_stdin() if pass_stdin else None

    async def request(services: Services, principal: Principal) -> ExecutionRequest:
        script = await services.scripts.get(principal, name)
        return ExecutionRequest(
            script_path=str(script.path),
            args=args,
            timeout_seconds=timeout,
            env_vars=env,
            env_file=env_file,
            stdin=stdin,
            label=label or script.name,
        )

    async def submit(services: Services, principal: Principal) -> Execution:
        return await services.executions.submit(principal, await request(services, principal))

    async def attend(services: Services, principal: Principal) -> tuple[Execution, str]:
        return await running.attend(services, principal, await request(services, principal))

    if detach:
        running.print_detached(session.run(submit, directory), as_json=as_json)
    else:
        running.run_attended(attend, directory)


@command.command("delete")
@click.argument("name")
def delete(name: str) -> None:
    """Delete a saved script."""
    path = session.run(lambda services, who: services.scripts.delete(who, name))
    click.echo(f"Deleted {path}.")


async def _list(services: Services, principal: Principal, *, autosaved: bool) -> Listed:
    saved = await services.scripts.entries(principal)
    last_runs = await services.executions.last_runs(principal, [one.path for one in saved])
    kept = await services.autosaved.entries(principal, SHOWN_AUTOSAVED) if autosaved else []
    ids = [one.last_job_id for one in kept if one.last_job_id]
    return saved, last_runs, kept, await services.executions.those(principal, ids)


async def _source(
    services: Services, principal: Principal, name: str, *, autosaved: bool
) -> tuple[Path, str, dict[str, Any] | None]:
    if autosaved:
        return await services.autosaved.source(principal, name)
    script, source = await services.scripts.source(principal, name)
    return script.path, source, None


def _print_saved(saved: list[SavedScript], last_runs: dict[Path, Execution]) -> None:
    if not saved:
        click.echo("No scripts.", err=True)
        return
    width = max(len("NAME"), *(len(one.name) for one in saved))
    click.echo(f"{'NAME':{width}}  {'STATUS':9}  {'LAST RUN':19}  WHAT")
    for one in saved:
        last = last_runs.get(one.path)
        status, at = (last.state, _time(last.created_at)) if last else ("", _NEVER)
        what = f"({one.fault})" if one.fault else _first_line(one.docstring)
        click.echo(legible(f"{one.name:{width}}  {status:9}  {at:19}  {what}".rstrip()))


def _print_autosaved(kept: list[AutosavedScript], last_jobs: dict[str, Execution]) -> None:
    if not kept:
        click.echo("No inline code.", err=True)
        return
    click.echo(f"{'NAME':16}  {'STATUS':9}  {'LAST RUN':19}  {'RUNS':>5}  WHAT")
    for one in kept:
        last = last_jobs.get(one.last_job_id or "")
        status = last.state if last else ""
        what = _first_line(one.docstring)
        click.echo(f"{one.name}  {status:9}  {_time(one.last_run_at):19}  {one.runs:5}  {what}".rstrip())


def _first_line(docstring: str | None) -> str:
    line = (docstring or "").strip().partition("\n")[0]
    return line if len(line) <= SHOWN_DOCSTRING else f"{line[:SHOWN_DOCSTRING]}…"


def _saved_as_json(script: SavedScript, last: Execution | None) -> dict[str, object]:
    return {
        "name": legible(script.name),
        "path": legible(str(script.path)),
        "docstring": script.docstring,
        "dependencies": script.dependencies,
        "requires_python": script.requires_python,
        "fault": script.fault,
        "last_run": session.as_json(last) if last else None,
    }


def _kept_as_json(script: AutosavedScript, last_jobs: dict[str, Execution]) -> dict[str, object]:
    last = last_jobs.get(script.last_job_id or "")
    return {
        "name": script.name,
        "path": str(script.path),
        "docstring": script.docstring,
        "runs": script.runs,
        "last_run_at": script.last_run_at,
        "last_run": session.as_json(last) if last else None,
    }


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
