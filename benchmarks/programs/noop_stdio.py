"""Our server over stdio, as it is served, with a tool beside that does nothing."""

import anyio
from fastmcp import FastMCP

from pyexec.app.lazy import LazyServices
from pyexec.app.principal import local_principal
from pyexec.app.wire import claim_stdout
from pyexec.mcp.server import build_server
from pyexec.settings import Settings, load_settings


async def serve(settings: Settings) -> None:
    services = LazyServices(settings)
    server: FastMCP = build_server(services, local_principal, settings.wait_seconds, settings.toolsets, sandboxed=True)

    @server.tool(description="Does nothing.")
    async def noop(number: int = 0) -> int:
        return number

    claim_stdout()
    try:
        await server.run_stdio_async(show_banner=False)
    finally:
        services.close()


if __name__ == "__main__":
    anyio.run(serve, load_settings())
