"""`pyexec doctor`."""

import json
import shutil
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path

import anyio
import click

from pyexec.app.diagnosis.checks import Check
from pyexec.app.diagnosis.doctor import examine
from pyexec.domain.errors import PyexecError
from pyexec.domain.sandboxes import WALLS, WallName
from pyexec.settings import load_settings

FAILURE = 1
LEAST_COLUMNS = 60
LINE_INDENT = " " * 8


@click.command("doctor")
@click.option("--online", is_flag=True, help="Ask the package index too.")
@click.option(
    "--wall",
    type=click.Choice(WALLS),
    help="Put this wall to the proof; without it: only whether there could be one.",
)
@click.option("--directory", type=click.Path(path_type=Path), help="Whose client configurations count besides yours.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(wall: WallName | None, directory: Path | None, *, online: bool, as_json: bool) -> None:
    """Look at everything that pyexec needs here, by trying; say what is wrong and what to do.

    Exits with 1 when something fails. Nothing that it starts stays.
    """
    try:
        settings = load_settings(directory=directory)
    except PyexecError as error:
        checks: tuple[Check, ...] = (Check(name="settings", status="fail", message=error.message, hint=error.hint),)
    else:
        checks = anyio.run(lambda: examine(settings, online=online, wall=wall))
    failed = any(check.status == "fail" for check in checks)
    if as_json:
        click.echo(json.dumps({"ok": not failed, "checks": [{**asdict(check), "id": check.key} for check in checks]}))
    else:
        group: str | None = None
        for check in checks:
            if check.group != group and check.group is not None:
                click.echo(f"\n{check.group}:")
            group = check.group
            _print(check)
    sys.exit(FAILURE if failed else 0)


def _print(check: Check) -> None:
    line = f"{check.status:4}  {check.name}: {check.message}"
    click.echo(line if check.group is None else _wrapped(line, LINE_INDENT))
    for detail in check.details:
        click.echo(f"        {detail}")
    if check.hint:
        hint = f"      > {check.hint}"
        click.echo(hint if check.group is None else _wrapped(hint, LINE_INDENT))


def _wrapped(line: str, indent: str) -> str:
    """Break a line where the terminal does, at words; what is to be typed stays in one piece."""
    width = max(shutil.get_terminal_size().columns, LEAST_COLUMNS)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
