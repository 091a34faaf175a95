"""`pyexec serve`."""

import importlib
import logging
import os
import sys
from pathlib import Path

import anyio
import click

from pyexec.observability.logs import configure_logging, take_over
from pyexec.observability.stacks import dump_on_signal
from pyexec.settings import load_settings

_log = logging.getLogger(__name__)


@click.command("serve")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    help="Where relative paths begin; default: the current directory.",
)
@click.option(
    "--toolsets",
    metavar="NAMES",
    help="Which tools to offer, such as core,jobs or default,quality; `pyexec tools` lists them.",
)
@click.version_option(package_name="mcp-pyexec", prog_name="pyexec")
def command(directory: Path | None, toolsets: str | None) -> None:
    """Serve one MCP client over stdin and stdout, until it hangs up.

    What the client started goes on afterwards; the next server finds it again.
    """
    settings = load_settings(directory=directory, toolsets=toolsets)
    dump_on_signal()
    configure_logging(settings.log_level, settings.home / "logs", settings.environ)
    for name in settings.unknown_variables:
        _log.warning("%s is not a setting of pyexec; is it misspelt?", name)
    if sys.stdin.isatty():
        click.echo("pyexec speaks MCP on stdin and stdout; an MCP client starts it. Ctrl-C ends it.", err=True)
    server = importlib.import_module("pyexec.app.server")
    take_over("fastmcp")
    status = 0
    try:
        anyio.run(server.serve_stdio, settings)
    except KeyboardInterrupt:
        status = 130
    logging.shutdown()
    # Taking a thousand modules apart takes a second, after which clients lose patience and send signals.
    os._exit(status)
