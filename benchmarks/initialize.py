"""How soon a client is answered: an editor that starts a server gives up on one that loads for too long."""

from pathlib import Path

from bench import HERE, Bench
from figures import Figure, in_milliseconds, interleave
from mcp_client import McpClient
from processes import cpu_seconds

BARE_SERVER = HERE / "baselines" / "bare_server.py"


def measure(bench: Bench) -> list[Figure]:
    walls: dict[str, list[float]] = {"ours": [], "bare": []}

    def ours() -> float:
        with bench.serve(bench.new_folder("home")) as client:
            return _answered(client, walls["ours"])

    def bare() -> float:
        with McpClient([bench.installation.python, str(BARE_SERVER)], environ, log) as client:
            return _answered(client, walls["bare"])

    environ = bench.installation.environ()
    log: Path = bench.new_folder("bare") / "stderr.log"
    ours_cpu, bare_cpu = interleave(bench.rounds(full=21, quick=3), ours, bare)
    return [
        in_milliseconds("initialize: CPU, against a bare FastMCP server", ours_cpu, bare_cpu, at_most=1.15),
        in_milliseconds("initialize: wall, against a bare FastMCP server", walls["ours"], walls["bare"]),
    ]


def _answered(client: McpClient, walls: list[float]) -> float:
    """Return what the server has used by the time its answer is here."""
    client.initialize()
    cpu = cpu_seconds(client.pid)
    walls.append(client.seconds_since_start())
    return cpu
