"""`pyexec-idp resources`."""

import re

import click

from pyexec_idp.cli.opening import parts, table
from pyexec_idp.domain.errors import InvalidValueError, UnknownResourceError
from pyexec_idp.domain.urls import check_resource
from pyexec_idp.domain.values import OPENID_SCOPES, Resource

_SCOPE = re.compile(r"[!#-\[\]-~]+")
"""RFC 6749 section 3.3."""


@click.group("resources")
def command() -> None:
    """Add, list and remove the servers that tokens are for."""


@command.command("add")
@click.argument("url")
@click.option("--name", help="What people read on the consent page; the URL where it is left out.")
@click.option("--scope", "scopes", multiple=True, metavar="NAME=WORDS", help="A scope, and what it allows, in words.")
@click.option("--default", "is_default", is_flag=True, help="Meant by clients that name none.")
def add(*, url: str, name: str | None, scopes: tuple[str, ...], is_default: bool) -> None:
    """Add the server at URL, or put it in the place of the one that is there. Its URL is the audience of its tokens."""
    words = dict(_scope(one) for one in scopes)
    resource = Resource(url=check_resource(url), name=name or url, scopes=words, is_default=is_default)
    with parts() as made:
        made.resources.put(resource)
        made.audit.note("resource_added", resource=resource.url)
    click.echo(f"Added {resource.url}.")


@command.command("list")
def show() -> None:
    """List the resources."""
    with parts() as made:
        resources = made.resources.all()
    table((one.url, one.name, " ".join(one.scopes) or "-", "default" if one.is_default else "-") for one in resources)


@command.command("remove")
@click.argument("url")
def remove(url: str) -> None:
    """Remove a resource: nobody gets tokens for it any more."""
    with parts() as made:
        if not made.resources.remove(url):
            raise UnknownResourceError(f"There is no resource {url[:200]!r}.")
        made.audit.note("resource_removed", resource=url)
    click.echo(f"Removed {url}.")


def _scope(text: str) -> tuple[str, str]:
    name, _, words = text.partition("=")
    if _SCOPE.fullmatch(name) is None or name in OPENID_SCOPES:
        raise InvalidValueError(f"{name[:100]!r} cannot be a scope of a resource.")
    return name, words.strip() or name
