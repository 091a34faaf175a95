"""The tool that gives a session packages."""

from collections import deque
from typing import TYPE_CHECKING

import anyio
from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations

from pyexec.domain.errors import PyexecError, WallUnavailableError
from pyexec.mcp import arguments as arg
from pyexec.mcp.answers import answer
from pyexec.mcp.progress import Reporter
from pyexec.mcp.results_packages import PackagesInstalled
from pyexec.mcp.running import Desk
from pyexec.mcp.session_tools import SessionId

if TYPE_CHECKING:
    from pyexec.environments.packages.sets import PackageSet
    from pyexec.sessions.packages import SessionPackages

INSTALL_PACKAGES = "Install packages (wheels) into a live session, which can then import them; its variables stay."
MAKES = ToolAnnotations(destructive_hint=False, open_world_hint=True)
LOOK_SECONDS = 0.2


def add_package_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tool to the server."""

    @server.tool(
        tags={"sessions", "dependencies"},
        output_schema=PackagesInstalled.output_schema(),
        annotations=MAKES,
        description=INSTALL_PACKAGES,
    )
    async def install_packages(
        context: Context, session_id: SessionId, packages: arg.Texts, *, markdown_output: arg.MarkdownOutput = True
    ) -> ToolResult:
        async def work() -> PackagesInstalled:
            made = await _install(desk, context, session_id, packages)
            return PackagesInstalled(session_id=session_id, installed=list(made.packages))

        return await answer(work, _render, PackagesInstalled, markdown=markdown_output)


async def _install(desk: Desk, context: Context, session_id: str, packages: list[str]) -> "PackageSet":
    service = await _service(desk)
    said: deque[str] = deque(maxlen=1)
    done: list[PackageSet | PyexecError] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_report, Reporter(context, f"session {session_id}"), said)
        try:
            done.append(await service.install(desk.principal(), session_id, tuple(packages), said.append))
        except PyexecError as error:  # Out of here it would come in a group.
            done.append(error)
        tasks.cancel_scope.cancel()
    if isinstance(done[0], PyexecError):
        raise done[0]
    return done[0]


async def _report(reporter: Reporter, said: deque[str]) -> None:
    await reporter.begin()
    while True:
        await reporter.still(said[-1] if said else "looking", news=True)
        await anyio.sleep(LOOK_SECONDS)


def _render(result: PackagesInstalled) -> str:
    installed = ", ".join(result.installed or ())
    told = f"installed {installed}." if installed else "all of that is there already."
    return f"Session `{result.session_id}`: {told}"


async def _service(desk: Desk) -> "SessionPackages":
    service = (await desk.services.get()).session_packages
    if service is None:
        raise WallUnavailableError("There are no sessions on this machine, because sandboxes need Linux.")
    return service
