"""A server over HTTP for two users: prints where it listens and a token for each, as one line of JSON."""

import json
import os
from functools import partial

import anyio

from pyexec.app.authorization import open_authorization
from pyexec.app.identity import with_authorization
from pyexec.app.lazy import LazyServices
from pyexec.app.service import build_service, service_server
from pyexec.domain.service import ServiceSettings, parse_address
from pyexec.http.serving import config_for, listen, serve_until_signalled
from pyexec.mcp.leaving import Leaving
from pyexec.observability.logs import configure_logging
from pyexec.observability.metrics import Metrics
from pyexec.settings import load_settings

USERS = ("quiet", "noisy")


async def serve() -> None:
    settings = load_settings(service={"rate": 100_000_000})
    configure_logging(settings.log_level, settings.home / "logs", settings.environ)
    listener = listen(parse_address("127.0.0.1:0"), "--http")
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    authorization = open_authorization(settings.authorization, f"http://{address}/mcp")
    if authorization is None or authorization.development_key is None:
        raise SystemExit("PYEXEC_AUTH_DEVELOPMENT is not set")
    key, resource = authorization.development_key, authorization.resource
    told = {"address": address, "tokens": {name: key.token(resource, subject=name) for name in USERS}}
    identities, leaving, services = with_authorization(authorization), Leaving(), LazyServices(settings)
    server = service_server(settings, services, identities, leaving)
    chosen = settings.service or ServiceSettings()
    service = build_service(server, settings, chosen, services, identities, Metrics())
    tell = partial(os.write, 1, f"{json.dumps(told)}\n".encode())
    config = config_for(service.app, chosen)
    await serve_until_signalled(config, listener, service.drain, chosen, started=tell, hand_over=leaving.leave)


if __name__ == "__main__":
    anyio.run(serve)
