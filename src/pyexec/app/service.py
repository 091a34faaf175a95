"""The MCP server that many use: Streamable HTTP, sandboxes, plain routes beside it."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync
from fastmcp import FastMCP
from fastmcp.server.http import StreamableHTTPASGIApp
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from pyexec.app.authorization import open_authorization
from pyexec.app.identity import Identities, with_authorization, without_authorization
from pyexec.app.lazy import LazyServices
from pyexec.app.loading import load, nothing_collected
from pyexec.app.observing import audit_log, observers, open_traces
from pyexec.app.warming import warm_sandboxes
from pyexec.domain.errors import InvalidArgumentError, PyexecError
from pyexec.domain.service import Address, ServiceSettings
from pyexec.executions.subscriptions import Subscriptions
from pyexec.http.answers import MCP_PATH
from pyexec.http.doorway import SESSION_HEADER, Doorway
from pyexec.http.drain import Drain, Draining
from pyexec.http.guard import Guard
from pyexec.http.health import healthz, readyz
from pyexec.http.limits import Buckets, RateLimit
from pyexec.http.metering import MetricsBehindToken, metrics_app
from pyexec.http.record import Record
from pyexec.http.serving import beside, config_for, listen, serve_until_signalled
from pyexec.http.streams import StreamWatch, closed_by_client
from pyexec.mcp.leaving import Leaving
from pyexec.mcp.server import OverHttp, build_server
from pyexec.observability.metrics import Metrics
from pyexec.settings import Settings
from pyexec.settings.service import require_safe
from pyexec.storage.ended_users import EndedUsers
from pyexec.storage.state_folder import StateFolder
from pyexec.web.events import PATH as EVENTS_PATH
from pyexec.web.events import execution_events
from pyexec.web.openapi import PATH as OPENAPI_PATH
from pyexec.web.openapi import openapi

SANDBOXES = "execute"
RETRY_SECONDS = 5.0
SETTLE_SECONDS = 2.0
_ASKED = ("Authorization", "Content-Type", "Last-Event-ID", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version")
_TOLD = ("Mcp-Session-Id", "Retry-After", "WWW-Authenticate", "X-Request-Id")

if TYPE_CHECKING:  # It brings the database along, which is loaded beside answering.
    from pyexec.executions.settling import Settler

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The server, and what ends it in order."""

    app: ASGIApp
    drain: Drain


async def serve_http(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve over HTTP until a signal ends it in order; `announce` hears where, once it answers.

    Raises:
        InvalidArgumentError: Settings contradict each other, or it cannot listen where it should.
    """
    chosen = settings.service or ServiceSettings()
    require_safe(chosen, authorized=settings.authorization.wanted)
    if SANDBOXES in settings.toolsets and settings.sandboxes.wall == "host":
        raise InvalidArgumentError(
            "PYEXEC_WALL is host; over HTTP execute_python runs code in sandboxes only.",
            hint="Leave PYEXEC_WALL out. Tools that run code on this machine are there when named: --toolsets core.",
        )
    listener = listen(chosen.address, "--http")
    host, port = listener.getsockname()[:2]
    url = f"{'https' if chosen.certificate else 'http'}://{Address(host, port)}{MCP_PATH}"
    ended = EndedUsers(StateFolder(settings.home).ended_users)
    authorization = open_authorization(settings.authorization, url, body_limit=chosen.body, ended=ended)
    identities = without_authorization() if authorization is None else with_authorization(authorization)
    metrics, traces, leaving = Metrics(), open_traces(chosen), Leaving()
    services = LazyServices(settings, observers(audit_log(settings, chosen), metrics, traces))
    with nothing_collected():
        server = service_server(settings, services, identities, leaving)
    service = build_service(server, settings, chosen, services, identities, metrics)
    config = config_for(service.app, chosen)
    said = f"pyexec serves MCP at {url}"
    if authorization is not None and authorization.development_token is not None:
        said += f"\nA token to try it out with: {authorization.development_token}"
    try:
        async with AsyncExitStack() as stack:
            if chosen.metrics is not None:
                await stack.enter_async_context(beside(metrics_app(metrics), listen(chosen.metrics, "--metrics")))
            await serve_until_signalled(
                config,
                listener,
                service.drain,
                chosen,
                started=partial(announce, said),
                hand_over=leaving.leave,
            )
    finally:
        services.close()
        if traces is not None:
            await run_sync(traces.close)


def service_server(settings: Settings, services: LazyServices, identities: Identities, leaving: Leaving) -> FastMCP:
    """Return the MCP server itself; `leaving` ends the waits of its tools."""
    return build_server(
        services,
        identities.principal,
        settings.wait_seconds,
        settings.toolsets,
        auth=identities.provider,
        checks=identities.checks,
        over_http=OverHttp(closed_by_client=closed_by_client, leaving=leaving),
    )


def build_service(
    server: FastMCP,
    settings: Settings,
    chosen: ServiceSettings,
    services: LazyServices,
    identities: Identities,
    metrics: Metrics,
) -> Service:
    """Put around it what makes it a service.

    Requests pass, in this order: whether they come from where they may; whether work is taken; what clients get wrong
    about `/mcp`; who asks (FastMCP, with the provider of `identities`); how much they ask; what answers.
    """
    drain = Drain()
    limits = [Middleware(RateLimit, identities.counted_as, Buckets(chosen.rate))] if chosen.rate else []
    inner = server.http_app(path=MCP_PATH, middleware=limits)
    followers = _Followers(services)
    inner.router.routes += [
        Route("/healthz", healthz),
        Route(OPENAPI_PATH, openapi),
        Route("/readyz", readyz(drain, partial(_require_ready, services))),
        Route(EVENTS_PATH, execution_events(followers.get, identities.reader_of)),
    ]
    _attend(inner, settings, chosen, services, followers)
    app: ASGIApp = StreamWatch(inner, drain, frozenset(HANDSHAKE_PROTOCOL_VERSIONS), chosen.on_disconnect)
    app = Draining(Doorway(app), drain)
    if chosen.origins:
        app = CORSMiddleware(
            app,
            allow_origins=chosen.origins,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=(*_ASKED, SESSION_HEADER),
            expose_headers=_TOLD,
        )
    if chosen.metrics_token is not None:
        # Before who asks is found out: this token is none of theirs.
        app = MetricsBehindToken(app, chosen.metrics_token, metrics)
    return Service(app=Record(Guard(app, chosen), metrics), drain=drain)


async def _require_ready(services: LazyServices) -> None:
    """Have the database answer: without it no work is taken."""
    opened = await services.get()
    await run_sync(opened.database.require)


class _Followers:
    """Makes subscriptions once the services are there, on the task group of the server's life."""

    def __init__(self, services: LazyServices) -> None:
        self._services = services
        self._subscriptions: Subscriptions | None = None
        self.tasks: TaskGroup | None = None

    async def get(self) -> Subscriptions:
        opened = await self._services.get()
        if self._subscriptions is None:
            if self.tasks is None:
                raise RuntimeError("asked before the server has started")
            self._subscriptions = Subscriptions(opened.executions, self.tasks)
        return self._subscriptions


def _attend(
    inner: Starlette, settings: Settings, chosen: ServiceSettings, services: LazyServices, followers: _Followers
) -> None:
    """Have what a server does besides answering begin and end with it."""
    begun = inner.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with begun(app), anyio.create_task_group() as tasks:
            _take_bodies(inner.routes, chosen.body)
            followers.tasks = tasks
            tasks.start_soon(_look_after, settings, services)
            yield
            tasks.cancel_scope.cancel()

    inner.router.lifespan_context = lifespan


def _take_bodies(routes: list[BaseRoute], largest: int) -> None:
    """Set the largest request, which FastMCP has no argument for."""
    for route in routes:
        if isinstance(route, Route) and route.path == MCP_PATH:
            endpoint = getattr(route.endpoint, "app", route.endpoint)  # Within what asks for a token, or bare.
            if not isinstance(endpoint, StreamableHTTPASGIApp) or endpoint.session_manager is None:
                raise TypeError("FastMCP does not answer at /mcp as it did")
            endpoint.session_manager.asgi_app.max_body_size = largest


async def _look_after(settings: Settings, services: LazyServices) -> None:
    """Open the services, have sandboxes ready, then sweep now and then."""
    while True:
        try:
            opened = await services.get()
            break
        except PyexecError as error:
            _log.warning("not ready yet: %s", error.sentence())
            await anyio.sleep(RETRY_SECONDS)
    load("pyexec.processes.promptness").be_prompt()
    async with anyio.create_task_group() as sweepers:
        sweepers.start_soon(opened.retention.sweep_forever)
        sweepers.start_soon(opened.environments.sweep_forever)
        sweepers.start_soon(_settle_forever, opened.settler)
        if opened.sessions is not None:
            sweepers.start_soon(opened.sessions.sweep_forever)
        if SANDBOXES in settings.toolsets:
            sweepers.start_soon(warm_sandboxes, opened.executions)


async def _settle_forever(settler: "Settler") -> None:
    """Notice the ends that nobody waits for, so that the audit log has them too."""
    while True:
        await anyio.sleep(SETTLE_SECONDS)
        try:
            await run_sync(settler.settle_all)
        except (OSError, PyexecError) as error:  # No reason to end the server.
            _log.warning("what has ended could not be noticed: %s", error)
