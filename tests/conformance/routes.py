"""Tries the plain routes of our server over HTTP with Schemathesis: `python -m tests.conformance.routes`."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCHEMATHESIS = Path(sys.prefix) / "bin" / "st"
OPTIONS = ("--max-examples", "60", "--seed", "1", "--phases", "examples,coverage,fuzzing", "--request-timeout", "20")
CHECKS = ("--checks", "all", "--exclude-checks", "positive_data_acceptance")
"""Cursors are opaque: no schema says which texts are ones."""


def main() -> int:
    """Run it; return the status to exit with."""
    with tempfile.TemporaryDirectory(prefix="pe-routes-", dir="/tmp") as folder:
        command = [sys.executable, "-m", "tests.conformance.server", str(Path(folder) / "home")]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            base = server.stdout.readline().strip().removesuffix("/mcp")
            done = subprocess.run(
                [SCHEMATHESIS, "run", f"{base}/openapi.json", *OPTIONS, *CHECKS], cwd=folder, check=False
            )
            server.terminate()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
