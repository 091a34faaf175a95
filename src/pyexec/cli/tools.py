"""`pyexec tools`."""

import json
from dataclasses import asdict
from itertools import groupby

import anyio
import click

from pyexec.domain.toolsets import TOOLSETS
from pyexec.mcp.catalogue import CatalogueEntry, catalogue
from pyexec.settings import load_settings


@click.command("tools")
@click.option("--toolsets", metavar="NAMES", help="Only these, as for `pyexec serve`; default: all there are.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(toolsets: str | None, *, as_json: bool) -> None:
    """List the tools by toolset, with about how many tokens a model reads for each.

    A toolset marked with * is offered when nobody says otherwise; `pyexec serve --toolsets` and PYEXEC_TOOLSETS say.
    """
    offered = load_settings().toolsets
    wanted = load_settings(toolsets=toolsets or ",".join(TOOLSETS)).toolsets
    entries = [entry for entry in anyio.run(catalogue) if entry.toolset in wanted]
    if as_json:
        click.echo(json.dumps([{**asdict(entry), "tokens": entry.tokens} for entry in entries]))
        return
    for toolset, group in groupby(entries, key=lambda entry: entry.toolset):
        tools = list(group)
        mark = "*" if toolset in offered else " "
        click.echo(f"{mark} {toolset:36}  {_tokens(tools):5}  {TOOLSETS[toolset]}")
        for entry in tools:
            click.echo(f"    {entry.name:34}  {entry.tokens:5}  {entry.description}")
    click.echo(f"  {'all of these':36}  {_tokens(entries):5}")
    click.echo(f"* {'offered':36}  {_tokens([entry for entry in entries if entry.toolset in offered]):5}")


def _tokens(entries: list[CatalogueEntry]) -> int:
    return sum(entry.tokens for entry in entries)
