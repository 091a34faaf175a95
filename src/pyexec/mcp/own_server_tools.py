"""The tools that look after jobs, for a server that is not ours."""

from collections.abc import Callable

from fastmcp import FastMCP

from pyexec.domain.principals import Principal
from pyexec.mcp import job_tools
from pyexec.mcp.cancellations import CancellationWatch
from pyexec.mcp.running import Desk, ServicesSource

Server = FastMCP
"""What they can be added to."""


def add_own_server_tools(server: Server, services: ServicesSource, principal: Callable[[], Principal]) -> None:
    """Add what somebody needs whose own tools hand back jobs: state and result, list, cancel, prune."""
    desk = Desk(
        services=services, principal=principal, cancellations=CancellationWatch(), wait_seconds=0, sandboxed=False
    )
    for add in (
        job_tools.add_py_job_status,
        job_tools.add_py_list_jobs,
        job_tools.add_py_cancel_job,
        job_tools.add_py_prune_jobs,
    ):
        add(server, desk)
