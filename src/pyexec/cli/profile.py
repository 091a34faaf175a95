"""`pyexec profile`."""

import shutil
import sys
from pathlib import Path

import click

from pyexec.app.services import Services
from pyexec.cli import session
from pyexec.cli.run import attend, report, variables
from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.profiles.modes import MODES, TOOLS, Mode
from pyexec.profiles.reading import FLAME_GRAPH, Profile, Row
from pyexec.profiles.requests import MOST_ROWS, measured, profile_of
from pyexec.storage.artifacts import FOLDER


@click.command("profile", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-m", "--mode", type=click.Choice(MODES), default="time", help="What to measure; default: time.")
@click.option("--top", type=click.IntRange(1, MOST_ROWS), default=15, metavar="N", help="How many rows to show.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the flame graph there.")
@click.option("--open", "show", is_flag=True, help="Open the flame graph in a browser.")
@click.option("-c", "code", help="Run this code instead of a file.")
@click.option(
    "--with", "dependencies", multiple=True, metavar="REQUIREMENT", help="A package that is needed; repeatable."
)
@click.option("--environment", metavar="NAME", help="The named environment to run in; see `pyexec env`.")
@click.option("-p", "--python", "python_version", metavar="VERSION", help="3.13, 3.13.2 or >=3.11; needs uv.")
@click.option("--uv/--no-uv", default=True, help="Run with uv (default), or with the python on PATH.")
@click.option("--timeout", type=float, default=0, metavar="SECONDS", help="End it after this long; 0: never.")
@click.option(
    "--env", multiple=True, callback=variables, metavar="NAME=VALUE", help="An environment variable; repeatable."
)
@click.option("--directory", type=click.Path(path_type=Path), help="Where to run; default: the current directory.")
@click.argument("words", nargs=-1, metavar="[FILE] [ARGS]...")
def command(
    *,
    mode: Mode,
    top: int,
    output: Path | None,
    show: bool,
    code: str | None,
    dependencies: tuple[str, ...],
    environment: str | None,
    python_version: str | None,
    uv: bool,
    timeout: float,
    env: dict[str, str],
    directory: Path | None,
    words: tuple[str, ...],
) -> None:
    """Run FILE, or CODE given with -c, measure it, and exit with its exit status.

    What it prints goes where it always goes; the profile follows on stderr. On Ctrl-C it shows what was measured up
    to then.
    """
    if code is None and not words:
        raise click.UsageError("Give a FILE to run, or -c CODE.")
    request = ExecutionRequest(
        script_path=None if code is not None else words[0],
        script_content=code,
        args=words if code is not None else words[1:],
        use_uv=uv,
        python_version=python_version,
        dependencies=dependencies or None,
        environment=environment,
        timeout_seconds=timeout,
        env_vars=env,
    )
    try:
        execution, stderr_end, profile, graph = session.run(
            lambda services, who: _measure(services, who, measured(request, mode)), directory
        )
    except BrokenPipeError:
        session.leave_broken_pipe()
        return
    status = report(execution, stderr_end)
    _say(profile, top)
    if graph is not None:
        _hand_out(graph, output, show=show)
    sys.exit(status)


async def _measure(
    services: Services, principal: Principal, request: ExecutionRequest
) -> tuple[Execution, str, Profile | str, Path | None]:
    execution, stderr_end = await attend(services, principal, request)
    profile = await profile_of(services.executions, principal, execution)
    try:  # It is a plain file of modest size, or it is not handed out.
        await services.executions.read_artifact(principal, execution.id, FLAME_GRAPH)
    except NotFoundError:
        return execution, stderr_end, profile, None
    graph = await services.executions.folder_of(execution) / FOLDER / FLAME_GRAPH
    return execution, stderr_end, profile, graph


def _say(profile: "Profile | str", top: int) -> None:
    if isinstance(profile, str):
        click.echo(f"pyexec: {profile}", err=True)
        return
    tool = TOOLS[profile.mode]
    counted = {"calls": "calls", "memory": "allocations"}.get(profile.mode)
    click.echo(f"\n{_amount(profile.total, tool.unit)} in all, by {profile.mode}\n", err=True)
    heads = ("own", "total", *([counted] if counted else []))
    click.echo(" ".join(f"{head:>12}" for head in heads) + "  function", err=True)
    for row in profile.rows[:top]:
        click.echo(_line(row, tool.unit, counted=counted is not None), err=True)
    click.echo(f"\n{profile.text}\n\n{tool.overhead}", err=True)


def _line(row: Row, unit: str, *, counted: bool) -> str:
    count = f" {row.count:>12}" if counted else ""
    where = f"  {row.file}:{row.line}" if row.file else ""
    return f"{_amount(row.own, unit):>12} {_amount(row.total, unit):>12}{count}  {row.function}{where}"


def _amount(value: float, unit: str) -> str:
    return f"{value:.4f} s" if unit == "seconds" else f"{value / 2**20:.2f} MiB"


def _hand_out(graph: Path, output: Path | None, *, show: bool) -> None:
    if output is not None:
        try:
            shutil.copyfile(graph, output)
        except OSError as error:
            raise InvalidArgumentError(f"--output {output} cannot be written: {error.strerror}.") from error
        graph = output.absolute()
    click.echo(f"\nflame graph: {graph}", err=True)
    if show:
        click.launch(str(graph))
