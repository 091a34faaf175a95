"""The command line. Commands are loaded when they are called: `--help` and the start of a server must be quick."""

import sys
from typing import NoReturn

import click

from pyexec.app.loading import load
from pyexec.domain.errors import PyexecError

FAILURE = 1

COMMANDS = {
    "serve": "Serve an MCP client over stdin and stdout.",
    "run": "Run a script or inline code: live output, its exit status.",
    "bench": "Measure a script, and compare it with others.",
    "profile": "Run a script and show what takes its time, calls or memory.",
    "scripts": "Save, list, show, run and delete scripts.",
    "env": "List, make, lock and remove environments.",
    "jobs": "List, show, follow, cancel and remove jobs.",
    "users": "End what somebody has at a server over HTTP.",
    "doctor": "Look at what pyexec needs here, and say what to do.",
    "config": "Show settings, and where things lie.",
    "tools": "List the tools that a server offers, by toolset.",
}


class _LazyGroup(click.Group):
    """Knows its commands by name and help; loads one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return _load(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mcp-pyexec", prog_name="pyexec")
def root() -> None:
    """Run Python so that nothing is lost: over MCP for agents, from here for people.

    Local mode is no sandbox: code runs with your files, your network and your rights.
    """


def main() -> NoReturn:
    """Run `pyexec`."""
    _run(root)


def serve_main() -> NoReturn:
    """Run `pyexec serve` under one of the names that people have in their client configuration."""
    _run(None)


def _load(name: str) -> click.Command:
    # Before anything else is imported: the other modules need what only a POSIX system has.
    load("pyexec.settings").require_supported_platform()
    command: click.Command = load(f"pyexec.cli.{name}").command
    return command


def _run(command: click.Command | None) -> NoReturn:
    try:
        (command or _load("serve")).main(standalone_mode=True)
    except PyexecError as error:
        click.echo(f"error: {error.message}", err=True)
        if error.hint:
            click.echo(f"\nhint: {error.hint}", err=True)
    sys.exit(FAILURE)
