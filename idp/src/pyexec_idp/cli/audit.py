"""`pyexec-idp audit`."""

import json
import time

import click

from pyexec_idp.cli.opening import parts, table


@click.command("audit")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 100_000), help="How many.")
@click.option("--user", help="Only what concerns the user of this name.")
@click.option("--client", help="Only what concerns the client of this id.")
def command(*, limit: int, user: str | None, client: str | None) -> None:
    """Show what happened, newest first: when, what, user, client, address, and the rest."""
    with parts() as made:
        user_id = None if user is None else made.people.named(user).id
        rows = made.audit.latest(limit, user_id=user_id, client_id=client)
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
