"""What a local server does not load."""

import json
import subprocess
import sys

LOADED = """
import json, sys
import pyexec.cli.serve, pyexec.app.server, pyexec.app.services
print(json.dumps(sorted(sys.modules)))
"""
OVER_HTTP = ("pyexec.http", "pyexec.web", "pyexec.app.service", "prometheus_client", "opentelemetry.sdk")


def test_a_local_server_loads_nothing_of_what_is_served_over_http() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert "pyexec.app.services" in loaded
    assert [
        name for name in loaded if name.startswith(tuple(f"{one}." for one in OVER_HTTP)) or name in OVER_HTTP
    ] == []
