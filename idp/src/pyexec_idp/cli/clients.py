"""`pyexec-idp clients`."""

import click

from pyexec_idp.cli.opening import parts, table
from pyexec_idp.domain.errors import InvalidValueError, UnknownClientError
from pyexec_idp.domain.secrets import hash_of, new_id, new_secret
from pyexec_idp.domain.urls import check_redirect, check_resource
from pyexec_idp.domain.values import Client, Origin

_SHORT = {"device_code": "urn:ietf:params:oauth:grant-type:device_code"}
_GRANTS = ("authorization_code", "refresh_token", "client_credentials", "device_code")


@click.group("clients")
def command() -> None:
    """Add, list and remove clients."""


@command.command("add")
@click.argument("name")
@click.option("--redirect-uri", "redirect_uris", multiple=True, help="Where codes may go.")
@click.option("--grant", "grants", multiple=True, type=click.Choice(_GRANTS), help="How it may get tokens.")
@click.option("--scope", "scopes", multiple=True, help="What it may ask for; without any, everything.")
@click.option("--public", is_flag=True, help="It cannot keep a secret, and gets none.")
@click.option("--introspects", multiple=True, help="The resource behind which it is: it may ask about its tokens.")
@click.option("--post-logout-redirect-uri", "after", multiple=True, help="Where it may lead people after signing out.")
def add(
    *,
    name: str,
    redirect_uris: tuple[str, ...],
    grants: tuple[str, ...],
    scopes: tuple[str, ...],
    public: bool,
    introspects: tuple[str, ...],
    after: tuple[str, ...],
) -> None:
    """Add a client that you vouch for: consent to it is remembered. Its secret is shown once."""
    chosen = grants or (("authorization_code", "refresh_token") if redirect_uris else ())
    if "authorization_code" in chosen and not redirect_uris:
        raise InvalidValueError("A client with authorization_code needs a --redirect-uri.")
    if public and ("client_credentials" in chosen or introspects):
        raise InvalidValueError("A public client can neither use client_credentials nor introspect.")
    with parts() as made:
        for uri in (*redirect_uris, *after):
            check_redirect(uri, made.settings.redirect_schemes)
        secret = None if public else new_secret()
        client = Client(
            id=new_id(),
            name=name,
            origin=Origin.OPERATOR,
            auth_method="none" if public else "client_secret_basic",
            secret_hash=None if secret is None else hash_of(secret),
            redirect_uris=redirect_uris,
            grant_types=tuple(_SHORT.get(one, one) for one in chosen),
            scopes=scopes,
            post_logout_redirect_uris=after,
            introspects=tuple(check_resource(one) for one in introspects),
            created_at=made.now(),
        )
        made.clients.add(client)
        made.audit.note("client_added", client_id=client.id, name=name)
    click.echo(f"client_id {client.id}")
    if secret is not None:
        click.echo(f"client_secret, shown once: {secret}")


@command.command("list")
def show() -> None:
    """List the clients."""
    with parts() as made:
        clients = made.clients.all()
    table((one.id, one.name, one.origin.value, " ".join(one.redirect_uris) or "-") for one in clients)


@command.command("secret")
@click.argument("client_id")
def secret(client_id: str) -> None:
    """Give a client a new secret, shown once; the old one ends."""
    with parts() as made:
        client = made.clients.get(client_id)
        if client is None or client.secret_hash is None:
            raise UnknownClientError(f"There is no client {client_id[:200]!r} with a secret.")
        new = new_secret()
        made.clients.change(client_id, {"secret_hash": hash_of(new)})
        made.audit.note("client_secret_changed", client_id=client_id)
    click.echo(f"client_secret, shown once: {new}")


@command.command("remove")
@click.argument("client_id")
def remove(client_id: str) -> None:
    """Remove a client with everything that it was allowed."""
    with parts() as made:
        if not made.clients.remove(client_id):
            raise UnknownClientError(f"There is no client {client_id[:200]!r}.")
        made.audit.note("client_removed", client_id=client_id)
    click.echo(f"Removed {client_id}.")
