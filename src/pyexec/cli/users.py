"""`pyexec users`."""

import json
import sys
import time

import anyio
import click

from pyexec.app.observing import audit_log
from pyexec.app.services import open_services
from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.principals import Principal
from pyexec.domain.service import ServiceSettings
from pyexec.executions.users import PATIENCE_SECONDS, EndedUser
from pyexec.observability.logs import configure_logging
from pyexec.settings import Settings, load_settings
from pyexec.storage.ended_users import EndedUsers
from pyexec.storage.state_folder import StateFolder

INCOMPLETE = 1

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("users")
def command() -> None:
    """End what somebody has at a server over HTTP.

    For who may write the state folder; set PYEXEC_HOME as the server has it.
    """


@command.command("end")
@click.argument("subject")
@click.option("--issuer", metavar="URL", help="Who issues their tokens; where the server takes those of one, that one.")
@click.option("--remove-files", is_flag=True, help="Remove the files of their sessions as well.")
@click.option(
    "--wait",
    "patience",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=PATIENCE_SECONDS,
    show_default=True,
    help="How long to wait at most for all to end.",
)
@json_option
def end(subject: str, issuer: str | None, patience: float, *, remove_files: bool, as_json: bool) -> None:
    """End all that a user runs, their sessions, and the tokens they have.

    SUBJECT is what their tokens say (`sub`); `pyexec-idp users list` shows it. Disable the user at the issuer first:
    tokens that are issued later count, from the time on that is told. Waits until all has ended; exits with 1 when
    something has not, and says what. It can be repeated.
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
        done = anyio.run(lambda: services.users.end(principal, remove_files=remove_files, patience=patience))
    finally:
        services.close()
    told = {"executions": len(done.executions), "sessions": len(done.sessions), "files_removed": remove_files}
    left = {"executions_left": len(done.running), "sessions_left": len(done.living), "complete": done.complete}
    audit_log(settings, settings.service or ServiceSettings()).user_ended(principal, **told, **left)
    if as_json:
        shown = told | {
            "ended_at": done.ended_at,
            "newer_tokens_count_after": _newer(settings, done.ended_at),
            "complete": done.complete,
            "jobs_left": sorted(done.running),
            "sessions_left": sorted(done.living),
            "unseen": done.unseen,
        }
        click.echo(json.dumps({"issuer": principal.issuer, "subject": subject, **shown}))
    else:
        _say(settings, subject, done)
    if not done.complete:
        sys.exit(INCOMPLETE)


@command.command("ended")
@json_option
def ended(*, as_json: bool) -> None:
    """List who was ended, and after which time tokens must have been issued to let them in again."""
    settings = load_settings()
    found = EndedUsers(StateFolder(settings.home).ended_users).all()
    if as_json:
        shown = [
            {
                "issuer": principal.issuer,
                "subject": principal.subject,
                "ended_at": ended_at,
                "newer_tokens_count_after": _newer(settings, ended_at),
            }
            for principal, ended_at in found
        ]
        click.echo(json.dumps({"users": shown}))
        return
    if not found:
        click.echo("Nobody was ended.", err=True)
        return
    click.echo(f"{'ENDED':23}  {'NEWER TOKENS COUNT AFTER':24}  SUBJECT AND ISSUER")
    for principal, ended_at in found:
        newer = _time(_newer(settings, ended_at))
        click.echo(f"{_time(ended_at)}  {newer:24}  {principal.subject} {principal.issuer}")


def _newer(settings: Settings, ended_at: float) -> float:
    """Return after which time a token must have been issued to count, as the server has it."""
    return ended_at + settings.authorization.skew


def _say(settings: Settings, subject: str, done: EndedUser) -> None:
    click.echo(f"Ended {len(done.executions)} jobs and {len(done.sessions)} sessions of {subject}.")
    click.echo(
        f"Tokens issued up to {_time(_newer(settings, done.ended_at))} count no more. Who is enabled at the issuer and "
        "signs in after that is let in again."
    )
    if done.complete:
        return
    if done.unseen:
        click.echo(f"error: What else they run is not known: {done.unseen}", err=True)
    for what, ids in (("jobs", done.running), ("sessions", done.living)):
        if ids:
            click.echo(f"error: {len(ids)} {what} could not be ended: {', '.join(sorted(ids))}", err=True)
    click.echo("\nhint: Run it again. `pyexec doctor` and the log of the server say more.", err=True)


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
