"""Which tools belong to which toolset. Modules of tools are loaded when they are offered: a start must be quick."""

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import TypeAlias

from fastmcp import FastMCP

from pyexec.mcp.running import Desk

Adder: TypeAlias = Callable[[FastMCP, Desk], None]

ADDERS: Mapping[str, tuple[str, ...]] = {
    "core": ("run_tools:add_run_tools", "start_tools:add_start_tools", "job_tools:add_job_reading_tools"),
    "jobs": ("job_tools:add_job_listing_tools", "cleanup_tools:add_cleanup_tools"),
    "scripts": ("scripts_tools:add_scripts_tools",),
    "environments": ("environment_tools:add_environment_tools",),
    "benchmarks": ("benchmark_tools:add_benchmark_tools",),
    "profiles": ("profile_tools:add_profile_tools",),
    "quality": ("quality_tools:add_quality_tools",),
    "execute": ("execute_tools:add_execute_tools",),
    "sessions": ("session_tools:add_session_tools", "package_tools:add_package_tools"),
    "files": ("files_tools:add_files_tools",),
}
"""What adds the tools of each toolset to a server, and its module; what it is for stands in `domain.toolsets`."""


FOR_A_SERVICE: Mapping[str, tuple[str, ...]] = {
    **ADDERS,
    "core": ("run_tools:add_run_tools", "start_tools:add_start_tools"),
    # Without `core` there is nothing else to read a job with.
    "jobs": ("job_tools:add_job_reading_tools", "job_tools:add_job_listing_tools"),
}
"""The same over HTTP, where `core` is not offered unless it is named."""


def add_toolsets(server: FastMCP, desk: Desk, names: tuple[str, ...], *, service: bool = False) -> None:
    """Add the tools of these toolsets to a server: a local one, or one over HTTP."""
    for name, adders in (FOR_A_SERVICE if service else ADDERS).items():
        if name in names:
            for adder in adders:
                add: Adder = resolve_name(f"pyexec.mcp.{adder}")
                add(server, desk)
