"""The command line. Commands are loaded when they are called: `--help` is quick."""

import importlib
import sys
from typing import NoReturn, cast

import click

from pyexec_idp.domain.errors import IdentityError

FAILURE = 1

COMMANDS = {
    "serve": "Serve until a signal ends it.",
    "check": "Look at settings, keys and database, and say what is wrong.",
    "users": "Add, list, disable and reset users.",
    "clients": "Add, list and remove clients.",
    "grants": "List and end what users allowed.",
    "resources": "Add, list and remove the servers that tokens are for.",
    "keys": "List and rotate the signing keys.",
    "audit": "Show what happened.",
}


class _LazyGroup(click.Group):
    """Knows its commands by name and help; loads one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return cast("click.Command", importlib.import_module(f"pyexec_idp.cli.{cmd_name}").command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pyexec-idp", prog_name="pyexec-idp")
def root() -> None:
    """The identity provider. Settings are environment variables: PYEXEC_IDP_ISSUER, PYEXEC_IDP_HOME and others."""


def main() -> NoReturn:
    """Run a command; refusals go to stderr with their hint."""
    try:
        root(standalone_mode=True)
    except IdentityError as error:
        print(f"pyexec-idp: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        sys.exit(FAILURE)
    sys.exit(0)
