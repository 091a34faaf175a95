"""`pyexec-idp audit`."""

import json
import time

import click

from pyexec_idp.cli.opening import parts, table


@click.command("audit")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 100_000), help="How many.")
def command(limit: int) -> None:
    """Show what happened, newest first."""
    with parts() as made:
        rows = made.audit.latest(limit)
    table(
        (
            time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row["at"])),
            row["what"],
            row["user_id"] or "-",
            row["client_id"] or "-",
            row["address"] or "-",
            json.dumps(row["detail"], ensure_ascii=False),
        )
        for row in rows
    )
