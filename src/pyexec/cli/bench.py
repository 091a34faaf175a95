"""`pyexec bench`."""

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path

import anyio
import click

from pyexec.app.services import Services
from pyexec.benchmarks.asking import BenchmarkRequest, Variant
from pyexec.benchmarks.report import Report, VariantReport
from pyexec.benchmarks.service import Findings
from pyexec.cli import session
from pyexec.cli.preparation import show_preparation
from pyexec.cli.run import variables
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.executions.advice import error_of

FAILURE = 1
_CLEAR = "\r\x1b[K"
_PROGRESS = re.compile(rb"^::progress \d+/\d+ (.*)\n", re.MULTILINE)


@click.command("bench", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-c", "code", help="Measure this code instead of a file.")
@click.option("-n", "--runs", type=int, metavar="N", help="Runs that count; default: 15.", default=15)
@click.option("-w", "--warmup", type=int, metavar="N", help="Runs before those; default: 1.")
@click.option("--compare", multiple=True, metavar="FILE", help="A file to compare with; repeatable.")
@click.option("--with", "dependencies", multiple=True, metavar="REQUIREMENT", help="A package needed; repeatable.")
@click.option("--environment", metavar="NAME", help="The named environment to run in; see `pyexec env`.")
@click.option("-p", "--python", "python_version", metavar="VERSION", help="3.13, 3.13.2 or >=3.11.")
@click.option("--compare-python", multiple=True, metavar="VERSION", help="The same on another Python; repeatable.")
@click.option("--timeout", type=float, default=0, metavar="SECONDS", help="For each run; 0: none.")
@click.option(
    "--env", multiple=True, callback=variables, metavar="NAME=VALUE", help="An environment variable; repeatable."
)
@click.option("--env-file", metavar="FILE", help="A .env file.")
@click.option("--sample-interval", type=float, default=0.05, metavar="SECONDS", help="Between looks at the memory.")
@click.option("--directory", type=click.Path(path_type=Path), help="Where to run; default: the current directory.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw it, into this PNG.")
@click.option("--label", metavar="TEXT", help="A name for the job lists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("words", nargs=-1, metavar="[FILE] [ARGS]...")
def command(
    *,
    code: str | None,
    runs: int,
    warmup: int | None,
    compare: tuple[str, ...],
    dependencies: tuple[str, ...],
    environment: str | None,
    python_version: str | None,
    compare_python: tuple[str, ...],
    timeout: float,
    env: dict[str, str],
    env_file: str | None,
    sample_interval: float,
    directory: Path | None,
    plot: Path | None,
    label: str | None,
    as_json: bool,
    words: tuple[str, ...],
) -> None:
    """Measure FILE, or CODE given with -c: time, memory, faults; and compare it with others.

    Exits with the status of a run that failed; no figures are given then.
    """
    if code is None and not words:
        raise click.UsageError("Give a FILE to measure, or -c CODE.")
    program = ExecutionRequest(
        script_path=None if code is not None else words[0],
        script_content=code,
        args=words if code is not None else words[1:],
        python_version=python_version,
        dependencies=dependencies,
        environment=environment,
        timeout_seconds=timeout,
        env_vars=env,
        env_file=env_file,
        label=label,
    )
    request = BenchmarkRequest(
        program=program,
        runs=runs,
        warmup=warmup,
        interval=sample_interval,
        compare=(
            *(Variant(name=file, script_path=file) for file in compare),
            *(Variant(name=f"Python {version}", python_version=version) for version in compare_python),
        ),
        plot=plot is not None,
        name="the code" if code is not None else words[0],
    )
    execution, findings = session.run(lambda services, who: _attend(services, who, request), directory)
    if plot is not None and findings.plot is not None:
        plot.write_bytes(findings.plot)
    sys.exit(_show(execution, findings.report, as_json=as_json))


async def _attend(services: Services, principal: Principal, request: BenchmarkRequest) -> tuple[Execution, Findings]:
    """Run it in the foreground, with interrupts passed to it; a terminal shows how far it is."""
    service = services.executions
    execution = await service.submit(principal, services.benchmarks.request(request))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.pass_interrupts, services, principal, execution.id)
        tasks.start_soon(show_preparation, service, principal, execution.id)
        async for piece in service.follow(principal, execution.id):
            steps = _PROGRESS.findall(piece.data)
            if steps and sys.stderr.isatty():
                click.echo(f"{_CLEAR}{steps[-1].decode('utf-8', 'replace')}", err=True, nl=False)
        tasks.cancel_scope.cancel()
    if sys.stderr.isatty():
        click.echo(_CLEAR, err=True, nl=False)
    execution = await service.get(principal, execution.id)
    return execution, await services.benchmarks.findings(principal, execution)


def _show(execution: Execution, report: Report | None, *, as_json: bool) -> int:
    failure = report.failure if report is not None else None
    status = execution.outcome.exit_code if execution.outcome else None
    if as_json:
        told = {"job_id": execution.id, "status": execution.state, "report": asdict(report) if report else None}
        click.echo(json.dumps(told))
    elif report is not None and report.variants:
        click.echo(_text(report))
    if report is not None and failure is not None:
        click.echo(failure.stderr, err=True, nl=not failure.stderr.endswith("\n"))
        click.echo(f"pyexec: {failure.sentence(report.runs, len(report.names))}", err=True)
    elif report is None or not report.variants:
        click.echo(f"pyexec: {error_of(execution, '') or 'what was measured cannot be read'}", err=True)
        return status or FAILURE
    return FAILURE if status is None else status


def _text(report: Report) -> str:
    parts = [_variant(number, variant, report.runs) for number, variant in enumerate(report.variants, 1)]
    compared = [_comparison(variant, report.names[0]) for variant in report.variants[1:]]
    if compared:
        parts.append("Summary\n" + "\n".join(compared))
    parts += [f"Note: {note}" for note in report.notes]
    return "\n\n".join(parts)


def _variant(number: int, variant: VariantReport, runs: int) -> str:
    wall = variant.wall
    width = 28
    cpu = f"    [User: {_time(variant.user)}, System: {_time(variant.system)}]"
    rows = [
        f"Benchmark {number}: {variant.name}",
        f"  {'Time (median ± MAD):':{width}}{_time(wall.median)} ± {_time(wall.mad)}{cpu}",
        f"  {'Range (min … max):':{width}}{_time(wall.minimum)} … {_time(wall.maximum)}    {runs} runs",
    ]
    if wall.low is not None and wall.high is not None:
        rows.append(f"  {'Median, 95 % interval:':{width}}{_time(wall.low)} … {_time(wall.high)}")
    rows.append(f"  {'Peak memory, all processes:':{width}}{variant.peak / 2**20:.1f} MB")
    return "\n".join(rows)


def _comparison(variant: VariantReport, first: str) -> str:
    compared = variant.comparison
    if compared is None:
        return ""
    interval = ""
    if compared.low is not None and compared.high is not None:
        interval = f" (99 % interval {compared.low:.3f} … {compared.high:.3f})"
    return f"  {variant.name}: {compared.verdict}: {compared.ratio:.3f} times the time of {first}{interval}"


def _time(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
