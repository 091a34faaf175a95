"""`pyexec-idp grants`."""

import time

import click

from pyexec_idp.cli.opening import parts, table
from pyexec_idp.domain.errors import UnknownGrantError


@click.group("grants")
def command() -> None:
    """List and end what users allowed."""


@command.command("list")
@click.argument("name")
def show(name: str) -> None:
    """List what the user NAME allowed and what holds: id, client, resource, scopes, when, and when last used."""
    with parts() as made:
        grants = made.grants.of(made.people.named(name).id)
        names = {one.id: one.name for one in made.clients.all()}
    table(
        (
            one.id,
            names.get(one.client_id, one.client_id),
            one.resource,
            " ".join(one.scopes),
            _day(one.created_at),
            "-" if one.used_at is None else _day(one.used_at),
        )
        for one in grants
    )


@command.command("revoke")
@click.argument("name")
@click.argument("grant_id", required=False)
def revoke(name: str, grant_id: str | None) -> None:
    """End the grant GRANT_ID of the user NAME, or all of them: no refresh token of theirs is good any more.

    Access tokens are inactive at /introspect and /userinfo at once, and expire everywhere else.
    """
    with parts() as made:
        user = made.people.named(name)
        if grant_id is None:
            made.grants.revoke_all(user.id, made.now())
        elif not made.grants.revoke(grant_id, made.now(), user_id=user.id):
            raise UnknownGrantError(f"{user.name} has no grant {grant_id[:100]!r} that holds.")
        made.audit.note("access_ended", user_id=user.id, by="operator", grant=grant_id or "all")
    click.echo(f"Ended what {user.name} allowed." if grant_id is None else f"Ended {grant_id}.")


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
