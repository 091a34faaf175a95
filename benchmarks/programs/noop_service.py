"""A server over HTTP with a tool that does nothing: `ours`, or FastMCP's `plain` app of the very same server."""

import os
import socket
import sys
from collections.abc import Callable
from functools import partial

import anyio
import uvicorn
from fastmcp import FastMCP

from pyexec.app.identity import without_authorization
from pyexec.app.lazy import LazyServices
from pyexec.app.service import build_service, service_server
from pyexec.domain.service import ServiceSettings, parse_address
from pyexec.http.serving import config_for, listen, serve_until_signalled
from pyexec.mcp.leaving import Leaving
from pyexec.observability.logs import configure_logging
from pyexec.observability.metrics import Metrics
from pyexec.settings import Settings, load_settings


async def serve(how: str) -> None:
    settings = load_settings(service={"rate": 100_000_000}, toolsets="jobs")
    configure_logging(settings.log_level, settings.home / "logs", settings.environ)
    leaving, services = Leaving(), LazyServices(settings)
    server = service_server(settings, services, without_authorization(), leaving)

    @server.tool(description="Does nothing.")
    async def noop(number: int = 0) -> int:
        return number

    listener = listen(parse_address("127.0.0.1:0"), "--http")
    url = f"127.0.0.1:{listener.getsockname()[1]}\n".encode()
    if how == "plain":
        os.write(1, url)
        await uvicorn.Server(_plain(server)).serve(sockets=[listener])
        return
    await _ours(settings, server, services, leaving, partial(os.write, 1, url), listener)


def _plain(server: FastMCP) -> uvicorn.Config:
    return uvicorn.Config(server.http_app(path="/mcp"), log_config=None, access_log=False, ws="none", lifespan="on")


async def _ours(
    settings: Settings,
    server: FastMCP,
    services: LazyServices,
    leaving: Leaving,
    tell: Callable[[], object],
    listener: socket.socket,
) -> None:
    chosen = settings.service or ServiceSettings()
    service = build_service(server, settings, chosen, services, without_authorization(), Metrics())
    config = config_for(service.app, chosen)
    await serve_until_signalled(config, listener, service.drain, chosen, started=tell, hand_over=leaving.leave)


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1])
