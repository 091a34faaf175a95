"""What it costs to have records in PostgreSQL instead of SQLite: submitting an execution, and listing the newest."""

import importlib
import json
import subprocess
import sys
from importlib.metadata import version

from bench import HERE, Bench
from figures import Figure, in_milliseconds
from installation import BenchmarkError
from processes import run

RECORDS = 10_000
LISTED = 50
INSIDE_SECONDS = 300.0


def measure(bench: Bench) -> list[Figure]:
    sys.path.append(str(HERE.parent))
    servers = importlib.import_module("tests.helpers.postgres")
    if not servers.PROGRAMS:
        print("PostgreSQL is not installed here: what it costs is not measured.", file=sys.stderr)
        return []
    installation = bench.installation
    environ = installation.environ()
    driver = f"psycopg[binary]=={version('psycopg')}"
    run([installation.uv, "pip", "install", "--quiet", "--python", installation.python, driver], environ)
    # As it comes: each commit is on the disk when it is answered.
    with servers.postgres_server(durable=True) as server:
        homes = [bench.new_folder("sqlite"), bench.new_folder("postgresql")]
        places = [
            {"PYEXEC_HOME": str(homes[0])},
            {"PYEXEC_HOME": str(homes[1]), "PYEXEC_DATABASE_URL": server.database()},
        ]
        for home, place in zip(homes, places, strict=True):
            filler = [installation.python, str(HERE / "inside" / "fill_store.py"), str(home), str(RECORDS)]
            run(filler, installation.environ(**place))
        server.execute("ANALYZE")
        rounds = bench.rounds(full=101, quick=21)
        done = subprocess.run(
            [installation.python, str(HERE / "inside" / "records.py"), str(LISTED), str(rounds)],
            input=json.dumps(places),
            env=environ,
            capture_output=True,
            text=True,
            timeout=INSIDE_SECONDS,
            check=False,
        )
    if done.returncode != 0:
        raise BenchmarkError(f"records failed: {done.stderr[-2000:]}")
    found: dict[str, list[list[float]]] = json.loads(done.stdout)
    return [
        _figure("submitting, records in PostgreSQL / SQLite", found["submit"]),
        _figure(f"newest {LISTED} of {RECORDS:,}, PostgreSQL / SQLite", found["list"]),
    ]


def _figure(what: str, samples: list[list[float]]) -> Figure:
    sqlite, postgresql = samples
    return in_milliseconds(what, postgresql, sqlite, at_most=2, plus_milliseconds=5.0)
