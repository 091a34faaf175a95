"""`pyexec-idp keys`."""

import time

import click

from pyexec_idp.cli.opening import parts, table


@click.group("keys")
def command() -> None:
    """List and rotate the signing keys."""


@command.command("list")
def show() -> None:
    """List the keys, newest first."""
    with parts() as made:
        keys = made.ring.all()
    table(
        (one.kid, f"signs from {_time(one.signs_from)}", f"published until {_time(one.published_until)}")
        for one in keys
    )


@command.command("rotate")
@click.option(
    "--now", "at_once", is_flag=True, help="The old keys were seen by others: withdraw them with all they signed."
)
def rotate(*, at_once: bool) -> None:
    """Make a new key. Running servers see it by themselves; it signs once everybody has had time to see it."""
    with parts() as made:
        made.ring.ensure()
        key = made.ring.rotate(at_once=at_once)
        made.audit.note("keys_rotated", kid=key.kid)
    click.echo(f"{key.kid} signs from {_time(key.signs_from)}")


def _time(at: float | None) -> str:
    return "further notice" if at is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
