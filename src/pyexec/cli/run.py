"""`pyexec run`."""

import json
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import anyio
import click

from pyexec.app.services import Services
from pyexec.cli import session
from pyexec.cli.preparation import show_preparation
from pyexec.cli.secrets import warn_of_secrets
from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.executions.advice import advice_for, error_of
from pyexec.storage.artifacts import FOLDER

NO_EXIT_CODE = 1
INTERRUPTED = 128 + signal.SIGINT


def variables(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE, as often as it was given."""
    for value in values:
        if "=" not in value:
            raise click.BadParameter(f"{value.partition('=')[0]!r} is not NAME=VALUE")
    return dict(value.split("=", 1) for value in values)


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-c", "code", help="Run this code instead of a file.")
# A flag, so that all that follows the name is the module's, whatever it looks like.
@click.option("-m", "is_module", is_flag=True, help="FILE is a module: run it as python -m does.")
@click.option(
    "--with", "dependencies", multiple=True, metavar="REQUIREMENT", help="A package that is needed; repeatable."
)
@click.option("-C", "--constraint", "constraints", multiple=True, metavar="REQUIREMENT", help="To stay within.")
@click.option("--index-url", metavar="URL", help="The package index to use in place of the usual one.")
@click.option("--environment", metavar="NAME", help="The named environment to run in; see `pyexec env`.")
@click.option("-p", "--python", "python_version", metavar="VERSION", help="3.13, 3.13.2 or >=3.11; needs uv.")
@click.option("--uv/--no-uv", default=True, help="Run with uv (default), or with the python on PATH.")
@click.option("--timeout", type=float, default=0, metavar="SECONDS", help="End it after this long; 0: never.")
@click.option(
    "--env", multiple=True, callback=variables, metavar="NAME=VALUE", help="An environment variable; repeatable."
)
@click.option("--env-file", metavar="FILE", help="A .env file.")
@click.option("--directory", type=click.Path(path_type=Path), help="Where to run; default: the current directory.")
@click.option("-i", "--stdin", "pass_stdin", is_flag=True, help="Pass standard input on, read to its end first.")
@click.option("--label", metavar="TEXT", help="A name for the job lists.")
@click.option("-d", "--detach", is_flag=True, help="Do not wait: print the job's id.")
@click.option("--json", "as_json", is_flag=True, help="With --detach: print the job's record as JSON.")
@click.argument("words", nargs=-1, metavar="[FILE] [ARGS]...")
def command(
    *,
    code: str | None,
    is_module: bool,
    dependencies: tuple[str, ...],
    constraints: tuple[str, ...],
    index_url: str | None,
    environment: str | None,
    python_version: str | None,
    uv: bool,
    timeout: float,
    env: dict[str, str],
    env_file: str | None,
    directory: Path | None,
    pass_stdin: bool,
    label: str | None,
    detach: bool,
    as_json: bool,
    words: tuple[str, ...],
) -> None:
    """Run FILE, or CODE given with -c, and exit with its exit status.

    Output appears as it is printed. Ctrl-C interrupts the program; the job and its output are kept in any case.
    """
    warn_of_secrets(variables=env, index_url=index_url, texts=(*dependencies, *constraints))
    if code is None and not words:
        raise click.UsageError("Give a FILE to run, or -c CODE.")
    if code is not None and is_module:
        raise click.UsageError("-c and -m exclude each other.")
    request = ExecutionRequest(
        script_path=None if code is not None or is_module else words[0],
        script_content=code,
        module=words[0] if is_module else None,
        args=words if code is not None else words[1:],
        use_uv=uv,
        python_version=python_version,
        dependencies=dependencies or None,
        constraints=constraints,
        index_url=index_url,
        environment=environment,
        timeout_seconds=timeout,
        env_vars=env,
        env_file=env_file,
        stdin=read_stdin() if pass_stdin else None,
        label=label,
    )
    if detach:
        execution = session.run(lambda services, who: services.executions.submit(who, request), directory)
        print_detached(execution, as_json=as_json)
        return
    run_attended(lambda services, who: attend(services, who, request), directory)


def run_attended(
    work: Callable[[Services, Principal], Awaitable[tuple[Execution, str]]], directory: Path | None
) -> NoReturn:
    """Run something in the foreground and exit with its exit status."""
    try:
        execution, stderr_end = session.run(work, directory)
    except BrokenPipeError:
        session.leave_broken_pipe()
    sys.exit(report(execution, stderr_end))


async def attend(services: Services, principal: Principal, request: ExecutionRequest) -> tuple[Execution, str]:
    """Run it in the foreground: pass its output on, and interrupts to it."""
    service = services.executions
    execution = await service.submit(principal, request)
    unread = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.pass_interrupts, services, principal, execution.id)
        tasks.start_soon(show_preparation, service, principal, execution.id)
        try:
            async for piece in service.follow(principal, execution.id):
                session.write_piece(piece)
        except BrokenPipeError:
            unread = True
            await service.stop(principal, execution.id, "cancel", "Nobody reads its output any more.")
        tasks.cancel_scope.cancel()
    if unread:
        raise BrokenPipeError
    reading = await service.read(principal, execution.id)
    folder = await service.folder_of(execution)
    for one in await service.artifacts(principal, execution.id):
        click.echo(f"pyexec: made {folder / FOLDER / one.name}", err=True)
    return reading.execution, reading.output.stderr.text


def report(execution: Execution, stderr: str) -> int:
    """Say on stderr how it ended, where the program has not; return the exit status to end with."""
    outcome = execution.outcome
    if outcome is None:
        return NO_EXIT_CODE
    if outcome.kind != "exited":
        click.echo(f"pyexec: {error_of(execution, stderr)}", err=True)
    advice = advice_for(execution, stderr)
    if advice:
        click.echo(f"\nhint: {advice}", err=True)
    return NO_EXIT_CODE if outcome.exit_code is None else outcome.exit_code


def print_detached(execution: Execution, *, as_json: bool) -> None:
    """Print what leads to a job that nobody waits for."""
    click.echo(json.dumps(session.as_json(execution)) if as_json else execution.id)


def read_stdin() -> str:
    """Read standard input to its end.

    Raises:
        InvalidArgumentError: It is no text.
    """
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"Standard input is not UTF-8 text (byte {error.start}).", hint="Write it to a file and give its path."
        ) from error
