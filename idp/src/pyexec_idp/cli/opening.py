"""What commands share: the parts, opened and closed again; and how lists are printed."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager

import click

from pyexec_idp.app.parts import Parts
from pyexec_idp.settings import read_settings


@contextmanager
def parts() -> Generator[Parts]:
    """Open the parts that a command works with; they need no issuer."""
    made = Parts(settings=read_settings(needs_issuer=False))
    try:
        yield made
    finally:
        made.close()


def table(rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows, a tab between fields; characters that would move the cursor are not printed."""
    for row in rows:
        click.echo("\t".join("".join(one if one.isprintable() else "?" for one in field) for field in row))
