"""The local MCP server: stdio, one user, no wall."""

import logging
from contextlib import suppress
from functools import partial

import anyio
from anyio.to_thread import run_sync

from pyexec.app.lazy import LazyServices
from pyexec.app.loading import load, nothing_collected
from pyexec.app.principal import local_principal
from pyexec.app.warming import warm_sandboxes
from pyexec.app.wire import claim_stdout
from pyexec.domain.errors import PyexecError
from pyexec.mcp.first_answer import FirstAnswer
from pyexec.mcp.server import build_server
from pyexec.settings import Settings

_log = logging.getLogger(__name__)

SANDBOXES = "execute"
"""The toolset whose tools run code in sandboxes."""

ALONE_SECONDS = 0.1
"""For this long after its first answer a client has the server to itself: most ask for the tools at once."""


async def serve_stdio(settings: Settings) -> None:
    """Serve one client over stdin and stdout until it hangs up. What it started goes on."""
    services = LazyServices(settings)
    sandboxed = settings.sandboxes.wall != "host"
    first_answer = FirstAnswer()
    with nothing_collected():
        server = build_server(
            services,
            local_principal,
            settings.wait_seconds,
            settings.toolsets,
            sandboxed=sandboxed,
            checks=[first_answer],
        )
    try:
        async with anyio.create_task_group() as tasks:
            warm = sandboxed and SANDBOXES in settings.toolsets
            tasks.start_soon(partial(_look_after, services, first_answer, warm=warm))
            claim_stdout()
            await server.run_stdio_async(show_banner=False)
            tasks.cancel_scope.cancel()
    finally:
        services.close()


def _import_ahead() -> None:
    """Import what FastMCP imports at the first call of a tool, half a second's worth, while nobody waits for it."""
    for name in ("key_value.aio.adapters.pydantic", "key_value.aio.stores.memory"):
        with suppress(ImportError):
            load(name)


async def _look_after(services: LazyServices, first_answer: FirstAnswer, *, warm: bool) -> None:
    """Open the services once the client has had its first answer, have sandboxes ready, then sweep now and then."""
    await first_answer.given.wait()
    await anyio.sleep(ALONE_SECONDS)
    await run_sync(_import_ahead)
    load("pyexec.processes.promptness").be_prompt()
    try:
        opened = await services.get()
    except PyexecError as error:
        _log.warning("not ready yet: %s", error.sentence())  # Whoever calls a tool is told, and tries again.
        return
    async with anyio.create_task_group() as sweepers:
        sweepers.start_soon(opened.retention.sweep_forever)
        sweepers.start_soon(opened.environments.sweep_forever)
        if opened.sessions is not None:
            sweepers.start_soon(opened.sessions.sweep_forever)
        if warm:
            sweepers.start_soon(warm_sandboxes, opened.executions)
