"""uvicorn, told how to listen, and made to end in our order."""

import logging
import os
import signal
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
import uvicorn
from starlette.types import ASGIApp

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.service import Address, ServiceSettings
from pyexec.http.drain import Drain

BACKLOG = 1024
KEEP_ALIVE_SECONDS = 75
ANSWERS_SECONDS = 3.0
"""How long calls have to answer once what they wait for has been taken from them."""

LAST_SECONDS = 3
"""How long connections have to close in the end."""

_log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """Leaves signals to us: the default cuts off who is being answered."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._tell()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def listen(address: Address, option: str) -> socket.socket:
    """Listen at an address; clients are answered once somebody serves there.

    Raises:
        InvalidArgumentError: It cannot be listened at.
    """
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _name, place = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise InvalidArgumentError(
            f"{option} {address}: nobody can listen there: {error.strerror or error}.",
            hint="Take another port, or end whoever listens there.",
        ) from error
    return listener


def config_for(app: ASGIApp, settings: ServiceSettings) -> uvicorn.Config:
    """Return how uvicorn serves.

    Raises:
        InvalidArgumentError: The certificate cannot be used.
    """
    _require_certificate(settings)
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=LAST_SECONDS,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )


@asynccontextmanager
async def beside(app: ASGIApp, listener: socket.socket) -> AsyncGenerator[None]:
    """Serve something small at another address as long as this lasts."""
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, lifespan="off", ws="none", proxy_headers=False
    )
    server = _Server(config, lambda: None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        yield
        server.should_exit = True


async def serve_until_signalled(
    config: uvicorn.Config,
    listener: socket.socket,
    drain: Drain,
    settings: ServiceSettings,
    *,
    started: Callable[[], object],
    hand_over: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT; then end in order: see `_end`. A second signal ends at once."""
    server = _Server(config, started)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_on_signals, server, drain, settings.drain, hand_over)
        await server.serve(sockets=[listener])
        tasks.cancel_scope.cancel()


async def _on_signals(server: uvicorn.Server, drain: Drain, seconds: float, hand_over: Callable[[], None]) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with anyio.create_task_group() as tasks:
            async for number in signals:
                if drain.begun:
                    _log.warning("told to end again: ending now")
                    server.force_exit = server.should_exit = True
                    continue
                _log.info("told to end (%s): open calls have %g s", signal.Signals(number).name, seconds)
                drain.begin()
                tasks.start_soon(_end, server, drain, seconds, hand_over)


async def _end(server: uvicorn.Server, drain: Drain, seconds: float, hand_over: Callable[[], None]) -> None:
    """Wait for open calls; those that wait too long are answered with a handle to what goes on; then close."""
    if not await drain.wait_idle(seconds):
        hand_over()
        await drain.wait_idle(ANSWERS_SECONDS)
    server.should_exit = True


def _require_certificate(settings: ServiceSettings) -> None:
    if settings.certificate is None or settings.key is None:
        return
    for option, path in (("--tls-certificate", settings.certificate), ("--tls-key", settings.key)):
        if not os.access(path, os.R_OK):
            raise InvalidArgumentError(f"{option} {path} cannot be read.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.certificate, settings.key)
    except (ssl.SSLError, OSError) as error:
        raise InvalidArgumentError(
            f"--tls-certificate {settings.certificate} and --tls-key {settings.key} cannot be used: {error}.",
            hint="Both are PEM files; the certificate comes first in its file, then those that vouch for it.",
        ) from error
