"""The MCP server: its name, its instructions, its tools."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from fastmcp import FastMCP
from fastmcp.server.auth import AuthProvider
from fastmcp.server.middleware import Middleware

from pyexec.domain.principals import Principal
from pyexec.domain.toolsets import DEFAULT_TOOLSETS
from pyexec.mcp.cancellations import CancellationWatch
from pyexec.mcp.error_answers import ErrorAnswers
from pyexec.mcp.leaving import Leaving
from pyexec.mcp.listing import Listing
from pyexec.mcp.no_state import NoState
from pyexec.mcp.running import Desk, ServicesSource
from pyexec.mcp.toolsets import add_toolsets

INSTRUCTIONS = """\
Runs Python on this machine, with its files and network: local mode is no sandbox.
run_script_in_dir runs a file or inline code in a directory; run_script_with_dependencies installs packages first.
Nothing that was started is lost: a run that takes longer than wait_seconds goes on as a job and its job_id comes back.
For work of more than 50 seconds pass async_mode=true and poll py_job_status with the next_cursor of the last answer,
or read job-stream://{job_id}. A failing program is a result with exit_code, stderr and a sentence of advice.
Answers are markdown; with markdown_output=false they are JSON.
"""

SERVICE_INSTRUCTIONS = """\
Runs Python in sandboxes of a server: no network, no files but those that code makes there.
execute_python answers with what code showed and its last value. Nothing that was started is lost: what takes longer
than wait_seconds goes on as a job and its job_id comes back; poll py_job_status with the last answer's next_cursor.
A failing program is a result with a traceback and a sentence of advice.
Answers are markdown; with markdown_output=false they are JSON.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverHttp:
    """What is different for a server that many use over HTTP.

    Attributes:
        closed_by_client: See `CancellationWatch`.
        leaving: Ends waits when the server has to go.
    """

    closed_by_client: Callable[[], bool | None]
    leaving: Leaving = field(default_factory=Leaving)


def build_server(
    services: ServicesSource,
    principal: Callable[[], Principal],
    wait_seconds: float,
    toolsets: tuple[str, ...] = DEFAULT_TOOLSETS,
    *,
    sandboxed: bool = True,
    auth: AuthProvider | None = None,
    checks: Sequence[Middleware] = (),
    over_http: OverHttp | None = None,
) -> FastMCP:
    """Build the server. The services are not opened before the first call that needs them.

    Args:
        services: Where they come from.
        principal: Tells who asks.
        wait_seconds: How long a call waits where the caller does not say.
        toolsets: Which tools there are.
        sandboxed: Whether `execute_python` runs code in sandboxes; else on the host.
        auth: Over HTTP: whose tokens count.
        checks: What looks at every message besides, such as whether its token covers it.
        over_http: What is different there; None over stdin and stdout.
    """
    cancellations = CancellationWatch(over_http.closed_by_client) if over_http else CancellationWatch()
    server = FastMCP(
        name="pyexec",
        instructions=SERVICE_INSTRUCTIONS if over_http else INSTRUCTIONS,
        version=version("mcp-pyexec"),
        middleware=[cancellations, ErrorAnswers(), *checks],
        auth=auth,
        mask_error_details=True,
        session_state_store=NoState(),
        dereference_schemas=False,  # `Listing` does it.
    )
    server.add_transform(Listing())
    desk = Desk(
        services=services,
        principal=principal,
        cancellations=cancellations,
        wait_seconds=wait_seconds,
        sandboxed=sandboxed,
        leaving=over_http.leaving if over_http else Leaving(),
    )
    add_toolsets(server, desk, toolsets, service=over_http is not None)
    return server
