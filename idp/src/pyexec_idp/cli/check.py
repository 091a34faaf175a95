"""`pyexec-idp check`."""

import click

from pyexec_idp.app.parts import Parts
from pyexec_idp.settings import read_settings


@click.command("check")
def command() -> None:
    """Look at settings, keys and database, and say what is wrong."""
    made = Parts(settings=read_settings())
    try:
        made.ring.ensure()
        signing = made.ring.signing().thumbprint()
        resources = made.resources.all()
        people = [one for one in made.people.all() if one.disabled_at is None]
    finally:
        made.close()
    click.echo(f"issuer {made.settings.issuer}")
    click.echo(f"keys in {made.keys_folder}, signing with {signing}")
    click.echo(f"{len(people)} users" + ("" if people else ": `pyexec-idp users add NAME` adds one"))
    for one in resources:
        click.echo(f"resource {one.url}: {', '.join(one.scopes) or 'no scopes'}")
    if not resources:
        click.echo("no resources: `pyexec-idp resources add URL --scope NAME=WORDS` adds one")
