"""Secrets on a command line, where `ps` and the shell's history show them."""

from collections.abc import Iterable, Mapping

import click

from pyexec.environments.credentials import masked
from pyexec.observability.logs import is_secret_name


def warn_of_secrets(*, variables: Mapping[str, str] | None = None, index_url: str | None, texts: Iterable[str]) -> None:
    """Say on stderr which values had better not have been given as an option; never the values themselves."""
    for name, value in (variables or {}).items():
        if is_secret_name(name) or masked(value) != value:
            _warn(f"the value of {name}", f"set {name} before pyexec is started, or put it into a file for --env-file")
    if index_url is not None and masked(index_url) != index_url:
        _warn("a password in --index-url", "set UV_DEFAULT_INDEX instead")
    if any(masked(text) != text for text in texts):
        _warn("a password in a requirement", "let uv find it: in ~/.netrc or by `uv auth login`")


def _warn(what: str, instead: str) -> None:
    click.echo(f"warning: {what} can be read by others in the list of processes; {instead}.", err=True)
