"""Every route, and who may call it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pyexec_idp.app.parts import Parts
from pyexec_idp.domain.calls import Call
from pyexec_idp.endpoints.operations import Operations
from pyexec_idp.endpoints.protocol import Protocol
from pyexec_idp.grants.authorizations import Authorizations
from pyexec_idp.grants.server import Server
from pyexec_idp.http.counting import Counted
from pyexec_idp.http.headers import SafeHeaders
from pyexec_idp.http.reading import Handler, on_thread
from pyexec_idp.pages.authorize import Consent, Devices
from pyexec_idp.pages.browser import Cookies
from pyexec_idp.pages.logout import Logout
from pyexec_idp.pages.rendering import Pages
from pyexec_idp.pages.sign_in import SignIns
from pyexec_idp.pages.sign_up import SignUps
from pyexec_idp.stores.housekeeping import clean

_CLEAN_EVERY = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One route: its path behind the issuer's, its methods, and whether programs in browsers of any origin may call."""

    path: str
    methods: tuple[str, ...]
    handler: Handler
    any_origin: bool = False
    at_root: bool = False
    """Whether the path stands before the issuer's (RFC 8414 section 3.1)."""


def ways(parts: Parts) -> list[Way]:
    """Return every route there is."""
    context = parts.context
    server = Server(context)
    settings = parts.settings
    protocol = Protocol(context, server, parts.ring, parts.registration)
    operations = Operations(parts.ring, parts.resources, parts.metrics)
    cookies = Cookies(settings.issuer, context.pepper, settings.lifetimes.sign_in)
    pages = Pages(settings.issuer, settings.title)
    sign_ins = SignIns(
        context=context,
        people=parts.people,
        sessions=parts.sessions,
        cookies=cookies,
        pages=pages,
        offers_sign_up=settings.sign_up,
    )
    consent = Consent(
        context=context,
        authorizations=Authorizations(context, server),
        sign_ins=sign_ins,
        cookies=cookies,
        pages=pages,
    )
    devices = Devices(
        context=context,
        attempts=parts.attempts,
        bounds=settings.bounds,
        sign_ins=sign_ins,
        cookies=cookies,
        pages=pages,
    )
    logout = Logout(context=context, sessions=parts.sessions, sign_ins=sign_ins, cookies=cookies, pages=pages)
    get, post, both = ("GET",), ("POST",), ("GET", "POST")
    oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    documents = [
        Way(path=oauth, methods=get, handler=protocol.metadata, any_origin=True, at_root=True),
        Way(path=openid, methods=get, handler=protocol.metadata, any_origin=True, at_root=True),
    ]
    if urlsplit(settings.issuer).path:
        documents += [
            Way(path=openid, methods=get, handler=protocol.metadata, any_origin=True),
            Way(path=oauth, methods=get, handler=protocol.metadata, any_origin=True),
        ]
    own = SignUps(people=parts.people, sign_ins=sign_ins, cookies=cookies, pages=pages)
    by_choice = [Way(path="/sign-up", methods=both, handler=own.sign_up)] if settings.sign_up else []
    return [
        *documents,
        *by_choice,
        Way(path="/.well-known/jwks.json", methods=get, handler=protocol.jwks, any_origin=True),
        Way(path="/token", methods=post, handler=protocol.token, any_origin=True),
        Way(path="/register", methods=post, handler=protocol.register, any_origin=True),
        Way(path="/revoke", methods=post, handler=protocol.revoke, any_origin=True),
        Way(path="/userinfo", methods=both, handler=protocol.userinfo, any_origin=True),
        Way(path="/introspect", methods=post, handler=protocol.introspect),
        Way(path="/device_authorization", methods=post, handler=protocol.device_authorization),
        Way(path="/authorize", methods=both, handler=consent.authorize),
        Way(path="/consent", methods=post, handler=consent.consent),
        Way(path="/sign-in", methods=post, handler=sign_ins.sign_in),
        Way(path="/sign-out", methods=post, handler=sign_ins.sign_out),
        Way(path="/account", methods=get, handler=sign_ins.account),
        Way(path="/account/revoke", methods=post, handler=sign_ins.revoke),
        Way(path="/account/sign-out", methods=post, handler=sign_ins.sign_out_elsewhere),
        Way(path="/device", methods=both, handler=devices.device),
        Way(path="/device/decide", methods=post, handler=devices.decide),
        Way(path="/logout", methods=both, handler=logout.logout),
        Way(path="/health", methods=get, handler=operations.health),
        Way(path="/metrics", methods=get, handler=operations.metrics),
    ]


def build(parts: Parts) -> Starlette:
    """Return the application."""
    prefix = urlsplit(parts.settings.issuer).path
    parts.ring.ensure()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_keep_clean, parts)
            yield
            tasks.cancel_scope.cancel()
        await anyio.to_thread.run_sync(parts.close)

    routes = [_route(way, prefix) for way in ways(parts)]
    counted = Middleware(Counted, metrics=parts.metrics, paths=[route.path for route in routes])
    return Starlette(
        routes=routes,
        middleware=[counted, Middleware(SafeHeaders, https=parts.settings.issuer.startswith("https:"))],
        exception_handlers={Exception: _failed},
        lifespan=lifespan,
    )


def _route(way: Way, prefix: str) -> Route:
    path = way.path + prefix if way.at_root else prefix + way.path
    if not way.any_origin:
        return Route(path, on_thread(way.handler), methods=list(way.methods))
    cors = Middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=list(way.methods),
        allow_headers=["*"],
        expose_headers=["WWW-Authenticate"],
        max_age=3600,
    )
    return Route(path, on_thread(_unless_asking(way.handler)), methods=[*way.methods, "OPTIONS"], middleware=[cors])


def _unless_asking(handler: Handler) -> Handler:
    def handle(call: Call) -> Response:
        return Response(status_code=204) if call.method == "OPTIONS" else handler(call)

    return handle


async def _keep_clean(parts: Parts) -> None:
    while True:
        settings = parts.settings
        await anyio.to_thread.run_sync(clean, parts.database, parts.now(), settings.lifetimes, settings.bounds)
        await anyio.sleep(_CLEAN_EVERY)


def _failed(_request: Request, _error: Exception) -> Response:
    """Say nothing of what it was: the log has it."""
    return PlainTextResponse("Something went wrong here.\n", status_code=500)
