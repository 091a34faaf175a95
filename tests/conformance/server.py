"""Our server over HTTP with what the conformance suites expect of one: `python -m tests.conformance.server HOME`."""

import os
import sys
from functools import partial
from pathlib import Path

import anyio

from pyexec.app.identity import without_authorization
from pyexec.app.lazy import LazyServices
from pyexec.app.service import build_service, service_server
from pyexec.domain.service import ServiceSettings, parse_address
from pyexec.http.serving import config_for, listen, serve_until_signalled
from pyexec.mcp.leaving import Leaving
from pyexec.observability.metrics import Metrics
from pyexec.settings import load_settings
from tests.conformance.fixtures import add_fixtures


async def main(home: Path) -> None:
    """Serve until a signal; the address goes to stdout."""
    settings = load_settings({"PYEXEC_HOME": str(home), "PYEXEC_TOOLSETS": "jobs"}, service={"rate": 0})
    chosen = settings.service or ServiceSettings()
    leaving, services = Leaving(), LazyServices(settings)
    server = service_server(settings, services, without_authorization(), leaving)
    add_fixtures(server)
    service = build_service(server, settings, chosen, services, without_authorization(), Metrics())
    listener = listen(parse_address("127.0.0.1:0"), "--http")
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    await serve_until_signalled(
        config_for(service.app, chosen),
        listener,
        service.drain,
        chosen,
        started=partial(os.write, 1, f"{url}\n".encode()),
        hand_over=leaving.leave,
    )
    services.close()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
