"""Tools that look after jobs, for anybody's own server."""

from pyexec.app.principal import local_principal
from pyexec.mcp.own_server_tools import Server, add_own_server_tools
from pyexec.smart_async.home import HOME


def add_job_tools(server: Server) -> None:
    """Add `py_job_status`, `py_list_jobs`, `py_cancel_job` and `py_prune_jobs` to a FastMCP server.

    They see every job of this user in the state folder (`PYEXEC_HOME`), whichever server runs it.
    """
    add_own_server_tools(server, HOME, local_principal)
