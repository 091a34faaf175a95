"""`pyexec serve`."""

import logging
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import click

from pyexec.app.loading import load
from pyexec.domain.service import DANGER, DEFAULT_ADDRESS
from pyexec.observability.logs import configure_logging, take_over
from pyexec.observability.stacks import dump_on_signal
from pyexec.settings import Settings, load_settings
from pyexec.settings.service import read_flag

_log = logging.getLogger(__name__)
_FILE = click.Path(exists=False, dir_okay=False, path_type=Path)


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
@click.option(
    "--http",
    metavar="HOST:PORT",
    is_flag=False,
    flag_value=DEFAULT_ADDRESS,
    help=f"Serve many clients over Streamable HTTP at /mcp, in sandboxes; alone: {DEFAULT_ADDRESS}.",
)
@click.option("--allowed-host", metavar="NAMES", multiple=True, help="Names clients may call it by, besides its own.")
@click.option("--allowed-origin", metavar="ORIGINS", multiple=True, help="Web pages that may call it (CORS).")
@click.option("--tls-certificate", type=_FILE, help="PEM file; without it TLS is a proxy's matter.")
@click.option("--tls-key", type=_FILE, help="PEM file of its key.")
@click.option("--trusted-proxy", metavar="ADDRESSES", multiple=True, help="Proxies whose forwarded headers count.")
@click.option("--metrics", metavar="HOST:PORT", help="Tell metrics for Prometheus there, to anyone who asks.")
@click.option(
    DANGER,
    "anyone",
    is_flag=True,
    help="Serve without authorization where others reach it. Whoever does runs code here.",
)
@click.version_option(package_name="mcp-pyexec", prog_name="pyexec")
def command(directory: Path | None, toolsets: str | None, http: str | None, **options: Any) -> None:
    """Serve MCP: one client over stdin and stdout, until it hangs up; with --http many, until a signal.

    What clients start goes on afterwards; the next server finds it again. Over HTTP code runs in sandboxes, and tools
    that run it on this machine are there only when --toolsets names them. SIGTERM ends the server in order: new work is
    refused with 503, open calls have PYEXEC_DRAIN_SECONDS.
    """
    flags = _flags(http, options)
    settings = load_settings(directory=directory, toolsets=toolsets, service=flags)
    dump_on_signal()
    as_json = settings.log_format == "json"
    configure_logging(
        settings.log_level, settings.home / "logs", settings.environ, secrets=settings.secrets.values(), as_json=as_json
    )
    for name in settings.unknown_variables:
        _log.warning("%s is not a setting of pyexec; is it misspelt?", name)
    status = 0
    try:
        if flags is None:
            _serve_stdio(settings)
        else:
            _serve_http(settings)
    except KeyboardInterrupt:
        status = 130
    logging.shutdown()
    # Taking a thousand modules apart takes a second, after which clients lose patience and send signals.
    os._exit(status)


def _serve_stdio(settings: Settings) -> None:
    if sys.stdin.isatty():
        click.echo("pyexec speaks MCP on stdin and stdout; an MCP client starts it. Ctrl-C ends it.", err=True)
    server = load("pyexec.app.server")
    take_over("fastmcp")
    anyio.run(server.serve_stdio, settings)


def _serve_http(settings: Settings) -> None:
    service = load("pyexec.app.service")
    take_over("fastmcp")
    anyio.run(service.serve_http, settings, _announce)


def _announce(said: str) -> None:
    click.echo(said, err=True)


def _flags(http: str | None, options: dict[str, Any]) -> dict[str, Any] | None:
    """Return what is said about a server over HTTP, by the names of its settings; None where there is to be none."""
    given = {name: value for name, value in options.items() if value}
    if http is None:
        if given:
            name = next(iter(given)).replace("_", "-")
            raise click.UsageError(f"--{'allow-anyone-from-anywhere' if name == 'anyone' else name} needs --http.")
        return None
    flags: dict[str, Any] = {"address": read_flag("--http", http)}
    for option, name in (("allowed_host", "hosts"), ("allowed_origin", "origins"), ("trusted_proxy", "proxies")):
        if option in given:
            flags[name] = read_flag(f"--{option.replace('_', '-')}", ",".join(given[option]))
    if "metrics" in given:
        flags["metrics"] = read_flag("--metrics", given["metrics"])
    names = {"tls_certificate": "certificate", "tls_key": "key", "anyone": "anyone"}
    return flags | {names[option]: value for option, value in given.items() if option in names}
