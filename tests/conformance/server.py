"""Our server over HTTP with what the conformance suites expect of one.

`python -m tests.conformance.server HOME [guarded]`. Guarded, it asks for a token like any server with authorization.
The suites cannot send one, so what stands before everything of ours gives one to each request that has none, as a proxy
would.
"""

import os
import sys
from functools import partial
from pathlib import Path

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from pyexec.app.authorization import open_authorization
from pyexec.app.identity import Identities, with_authorization, without_authorization
from pyexec.app.lazy import LazyServices
from pyexec.app.service import build_service, service_server
from pyexec.domain.service import ServiceSettings, parse_address
from pyexec.http.serving import config_for, listen, serve_until_signalled
from pyexec.mcp.leaving import Leaving
from pyexec.observability.metrics import Metrics
from pyexec.settings import Settings, load_settings
from tests.conformance.fixtures import add_fixtures

ISSUER = "https://id.example.com"
"""Named so that there are metadata; nobody asks it."""

SCOPES = ("admin",)
"""What the fixtures need, since nobody says what they are for."""


class TokenAdded:
    """Gives a token to requests that bring none."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._header = (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] == "http" and not any(name == b"authorization" for name, _value in scope["headers"]):
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


def _identities(settings: Settings, url: str) -> tuple[Identities, str | None]:
    authorization = open_authorization(settings.authorization, url)
    if authorization is None:
        return without_authorization(), None
    key = authorization.development_key
    assert key is not None
    return with_authorization(authorization), key.token(authorization.resource, scopes=SCOPES)


async def main(home: Path, *, guarded: bool) -> None:
    """Serve until a signal; the address goes to stdout."""
    environ = {"PYEXEC_HOME": str(home), "PYEXEC_TOOLSETS": "jobs"}
    if guarded:
        environ |= {"PYEXEC_AUTH_DEVELOPMENT": "yes", "PYEXEC_AUTH_ISSUERS": ISSUER}
    settings = load_settings(environ, service={"rate": 0})
    chosen = settings.service or ServiceSettings()
    listener = listen(parse_address("127.0.0.1:0"), "--http")
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    identities, token = _identities(settings, url)
    leaving, services = Leaving(), LazyServices(settings)
    server = service_server(settings, services, identities, leaving)
    add_fixtures(server)
    service = build_service(server, settings, chosen, services, identities, Metrics())
    await serve_until_signalled(
        config_for(service.app if token is None else TokenAdded(service.app, token), chosen),
        listener,
        service.drain,
        chosen,
        started=partial(os.write, 1, f"{url}\n".encode()),
        hand_over=leaving.leave,
    )
    services.close()


if __name__ == "__main__":
    anyio.run(partial(main, Path(sys.argv[1]), guarded="guarded" in sys.argv[2:]))
