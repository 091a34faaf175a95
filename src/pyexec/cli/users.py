"""`pyexec users`."""

import json
from dataclasses import asdict

import anyio
import click

from pyexec.app.observing import audit_log
from pyexec.app.services import open_services
from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.principals import Principal
from pyexec.domain.service import ServiceSettings
from pyexec.observability.logs import configure_logging
from pyexec.settings import load_settings


@click.group("users")
def command() -> None:
    """End what somebody has at a server over HTTP.

    For who may write the state folder; set PYEXEC_HOME as the server has it.
    """


@command.command("end")
@click.argument("subject")
@click.option("--issuer", metavar="URL", help="Who issues their tokens; where the server takes those of one, that one.")
@click.option("--remove-files", is_flag=True, help="Remove the files of their sessions as well.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def end(subject: str, issuer: str | None, *, remove_files: bool, as_json: bool) -> None:
    """End all that a user runs, their sessions, and the tokens they have.

    SUBJECT is what their tokens say (`sub`); `pyexec-idp users list` shows it. Disable the user at the issuer first:
    tokens that are issued later count.
    """
    settings = load_settings()
    known = [policy.url for policy in settings.authorization.issuers]
    if issuer is None and len(known) != 1:
        raise InvalidArgumentError(
            f"{len(known)} issuers are known here, so --issuer must say whose user {subject[:100]!r} is.",
            hint="Give the URL as PYEXEC_AUTH_ISSUERS has it, letter by letter.",
        )
    principal = Principal(issuer=issuer or known[0], subject=subject)
    configure_logging("warning", None, settings.environ, secrets=settings.secrets.values())
    services = open_services(settings)
    try:
        done = anyio.run(lambda: services.users.end(principal, remove_files=remove_files))
    finally:
        services.close()
    audit_log(settings, settings.service or ServiceSettings()).user_ended(principal, **asdict(done))
    if as_json:
        click.echo(json.dumps({"issuer": principal.issuer, "subject": subject, **asdict(done)}))
        return
    click.echo(f"Ended {done.executions} jobs and {done.sessions} sessions of {subject}.")
