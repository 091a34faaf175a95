"""`pyexec-idp serve`."""

import click

from pyexec_idp.app.documents import find_documents
from pyexec_idp.app.parts import Parts
from pyexec_idp.app.serving import serve
from pyexec_idp.settings import read_settings


@click.command("serve")
def command() -> None:
    """Serve until a signal ends it."""
    settings = read_settings()
    serve(Parts(settings=settings, find_document=find_documents(settings)))
