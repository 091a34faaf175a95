"""The toolsets: tools in groups that an operator can switch on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fastmcp import FastMCP

from pyexec.mcp.environment_tools import add_environment_tools
from pyexec.mcp.job_tools import add_job_listing_tools, add_job_reading_tools
from pyexec.mcp.run_tools import add_run_tools
from pyexec.mcp.running import Desk


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """A group of tools: what it is for, and the functions that add it to a server."""

    meaning: str
    add: tuple[Callable[[FastMCP, Desk], None], ...]


TOOLSETS: Mapping[str, Toolset] = {
    "core": Toolset(meaning="Run Python, read and end jobs.", add=(add_run_tools, add_job_reading_tools)),
    "jobs": Toolset(meaning="List and remove jobs.", add=(add_job_listing_tools,)),
    "environments": Toolset(meaning="Make, list, lock and remove environments.", add=(add_environment_tools,)),
}

DEFAULT_TOOLSETS = ("core", "jobs", "environments")
"""What a local server offers when nobody says otherwise."""


def add_toolsets(server: FastMCP, desk: Desk, names: tuple[str, ...]) -> None:
    """Add the tools of these toolsets to a server."""
    for name in TOOLSETS:
        if name in names:
            for add in TOOLSETS[name].add:
                add(server, desk)
