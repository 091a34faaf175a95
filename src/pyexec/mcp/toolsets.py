"""Which tools belong to which toolset."""

from collections.abc import Callable, Mapping

from fastmcp import FastMCP

from pyexec.mcp.benchmark_tools import add_benchmark_tools
from pyexec.mcp.cleanup_tools import add_cleanup_tools
from pyexec.mcp.environment_tools import add_environment_tools
from pyexec.mcp.execute_tools import add_execute_tools
from pyexec.mcp.files_tools import add_files_tools
from pyexec.mcp.job_tools import add_job_listing_tools, add_job_reading_tools
from pyexec.mcp.package_tools import add_package_tools
from pyexec.mcp.profile_tools import add_profile_tools
from pyexec.mcp.quality_tools import add_quality_tools
from pyexec.mcp.run_tools import add_run_tools
from pyexec.mcp.running import Desk
from pyexec.mcp.scripts_tools import add_scripts_tools
from pyexec.mcp.session_tools import add_session_tools
from pyexec.mcp.start_tools import add_start_tools

ADDERS: Mapping[str, tuple[Callable[[FastMCP, Desk], None], ...]] = {
    "core": (add_run_tools, add_start_tools, add_job_reading_tools),
    "jobs": (add_job_listing_tools, add_cleanup_tools),
    "scripts": (add_scripts_tools,),
    "environments": (add_environment_tools,),
    "benchmarks": (add_benchmark_tools,),
    "profiles": (add_profile_tools,),
    "quality": (add_quality_tools,),
    "execute": (add_execute_tools,),
    "sessions": (add_session_tools, add_package_tools),
    "files": (add_files_tools,),
}
"""What adds the tools of each toolset to a server; what it is for stands in `domain.toolsets`."""


FOR_A_SERVICE: Mapping[str, tuple[Callable[[FastMCP, Desk], None], ...]] = {
    **ADDERS,
    "core": (add_run_tools, add_start_tools),
    # Without `core` there is nothing else to read a job with.
    "jobs": (add_job_reading_tools, add_job_listing_tools),
}
"""The same over HTTP, where `core` is not offered unless it is named."""


def add_toolsets(server: FastMCP, desk: Desk, names: tuple[str, ...], *, service: bool = False) -> None:
    """Add the tools of these toolsets to a server: a local one, or one over HTTP."""
    for name, adders in (FOR_A_SERVICE if service else ADDERS).items():
        if name in names:
            for add in adders:
                add(server, desk)
