"""A server over HTTP with a tool that does nothing; prints where it listens, and a token where one is needed.

`ours` is a server that asks for tokens, `cells` one that runs code in sandboxes too, `plain` FastMCP's own app of the
very same server, `bare` the app of a server that has nothing but the tool: these two ask for none.
"""

import os
import sys
from functools import partial

import anyio
import uvicorn
from fastmcp import FastMCP

from pyexec.app.authorization import open_authorization
from pyexec.app.identity import with_authorization, without_authorization
from pyexec.app.lazy import LazyServices
from pyexec.app.service import build_service, service_server
from pyexec.domain.service import ServiceSettings, parse_address
from pyexec.http.serving import config_for, listen, serve_until_signalled
from pyexec.mcp.leaving import Leaving
from pyexec.observability.logs import configure_logging
from pyexec.observability.metrics import Metrics
from pyexec.settings import load_settings

LISTENER = listen(parse_address("127.0.0.1:0"), "--http")
NOOP = "format_code"
"""The name of one of ours that is not there, so that it has a scope like all of ours."""

ADDRESS = f"127.0.0.1:{LISTENER.getsockname()[1]}"


def add_noop(server: FastMCP) -> None:
    @server.tool(name=NOOP, description="Does nothing.")
    async def noop(number: int = 0) -> int:
        return number


async def serve_plain(*, bare: bool) -> None:
    settings = load_settings(service={}, toolsets="jobs")
    server = (
        FastMCP("bare")
        if bare
        else service_server(settings, LazyServices(settings), without_authorization(), Leaving())
    )
    add_noop(server)
    os.write(1, f"{ADDRESS} -\n".encode())
    config = uvicorn.Config(server.http_app(path="/mcp"), log_config=None, access_log=False, ws="none", lifespan="on")
    await uvicorn.Server(config).serve(sockets=[LISTENER])


async def serve_ours(toolsets: str) -> None:
    environ = {**os.environ, "PYEXEC_AUTH_DEVELOPMENT": "yes", "PYEXEC_HTTP_RATE": "1000000"}
    settings = load_settings(environ, service={}, toolsets=toolsets)
    configure_logging(settings.log_level, settings.home / "logs", settings.environ)
    chosen = settings.service or ServiceSettings()
    authorization = open_authorization(settings.authorization, f"http://{ADDRESS}/mcp")
    assert authorization is not None
    key = authorization.development_key
    assert key is not None
    token = key.token(authorization.resource, scopes=["python:execute", "sessions:write"])
    identities, leaving, services = with_authorization(authorization), Leaving(), LazyServices(settings)
    server = service_server(settings, services, identities, leaving)
    add_noop(server)
    service = build_service(server, settings, chosen, services, identities, Metrics())
    tell = partial(os.write, 1, f"{ADDRESS} {token}\n".encode())
    config = config_for(service.app, chosen)
    await serve_until_signalled(config, LISTENER, service.drain, chosen, started=tell, hand_over=leaving.leave)


if __name__ == "__main__":
    how = sys.argv[1]
    if how in ("ours", "cells"):
        anyio.run(serve_ours, "jobs" if how == "ours" else "jobs,execute,sessions")
    else:
        anyio.run(partial(serve_plain, bare=how == "bare"))
