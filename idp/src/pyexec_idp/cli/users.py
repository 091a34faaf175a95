"""`pyexec-idp users`."""

import secrets
import sys

import click

from pyexec_idp.cli.opening import parts, table


@click.group("users")
def command() -> None:
    """Add, list, disable and reset users."""


@command.command("add")
@click.argument("name")
@click.option("--display-name", help="How clients may call them.")
@click.option("--email", help="Their e-mail address.")
@click.option("--password-stdin", is_flag=True, help="Read the password from the first line of stdin.")
@click.option("--generate", is_flag=True, help="Make a password and show it once.")
@click.option("--password-hash", help="An argon2id or bcrypt hash from elsewhere.")
def add(
    *,
    name: str,
    display_name: str | None,
    email: str | None,
    password_stdin: bool,
    generate: bool,
    password_hash: str | None,
) -> None:
    """Add a user; the password is asked for, unless an option says where it comes from."""
    password = None if password_hash is not None else _password(from_stdin=password_stdin, generate=generate)
    with parts() as made:
        user = made.people.add(name, password, display_name=display_name, email=email, password_hash=password_hash)
    click.echo(f"Added {user.name} ({user.id}).")
    if generate and password is not None:
        click.echo(f"Password, shown once: {password}")


@command.command("list")
def show() -> None:
    """List the users."""
    with parts() as made:
        users = made.people.all()
    table(
        (one.name, one.id, one.email or "-", "disabled" if one.disabled_at is not None else "active") for one in users
    )


@command.command("disable")
@click.argument("name")
def disable(name: str) -> None:
    """Refuse a user from now on; everything they allowed ends."""
    with parts() as made:
        made.people.disable(name)
    click.echo(f"Disabled {name}.")


@command.command("enable")
@click.argument("name")
def enable(name: str) -> None:
    """Let a disabled user in again."""
    with parts() as made:
        made.people.enable(name)
    click.echo(f"Enabled {name}.")


@command.command("reset")
@click.argument("name")
@click.option("--password-stdin", is_flag=True, help="Read the password from the first line of stdin.")
@click.option("--generate", is_flag=True, help="Make a password and show it once.")
def reset(*, name: str, password_stdin: bool, generate: bool) -> None:
    """Give a user a new password; they are signed out everywhere."""
    password = _password(from_stdin=password_stdin, generate=generate)
    with parts() as made:
        made.people.reset(name, password)
    click.echo(f"Reset {name}.")
    if generate:
        click.echo(f"Password, shown once: {password}")


def _password(*, from_stdin: bool, generate: bool) -> str:
    if generate:
        return secrets.token_urlsafe(15)
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    return click.prompt("Password", hide_input=True, confirmation_prompt=True)
