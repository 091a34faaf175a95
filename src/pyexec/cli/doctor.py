"""`pyexec doctor`."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import anyio
import click

from pyexec.app.diagnosis.checks import Check
from pyexec.app.diagnosis.doctor import examine
from pyexec.domain.errors import PyexecError
from pyexec.settings import load_settings

FAILURE = 1


@click.command("doctor")
@click.option("--online", is_flag=True, help="Ask the package index too.")
@click.option("--directory", type=click.Path(path_type=Path), help="Whose client configurations count besides yours.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(directory: Path | None, *, online: bool, as_json: bool) -> None:
    """Look at everything that pyexec needs here, by trying; say what is wrong and what to do.

    Exits with 1 when something fails. Nothing that it starts stays.
    """
    try:
        settings = load_settings(directory=directory)
    except PyexecError as error:
        checks: tuple[Check, ...] = (Check(name="settings", status="fail", message=error.message, hint=error.hint),)
    else:
        checks = anyio.run(lambda: examine(settings, online=online))
    failed = any(check.status == "fail" for check in checks)
    if as_json:
        click.echo(json.dumps({"ok": not failed, "checks": [asdict(check) for check in checks]}))
    else:
        for check in checks:
            _print(check)
    sys.exit(FAILURE if failed else 0)


def _print(check: Check) -> None:
    click.echo(f"{check.status:4}  {check.name}: {check.message}")
    for line in check.details:
        click.echo(f"        {line}")
    if check.hint:
        click.echo(f"      > {check.hint}")
