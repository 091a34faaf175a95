"""The identity provider as an operator runs it: commands, and a server in a process of its own."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from click.testing import CliRunner

from pyexec_idp.cli.main import root
from pyexec_idp.domain.errors import IdentityError
from tests.helpers.processes import eventually
from tests.idp.site import CHEAP, PASSWORD, Forms

PROGRAM = Path(sys.prefix) / "bin" / "pyexec-idp"
COMMAND_SECONDS = 50.0
PATIENCE_SECONDS = 60.0
"""For a page, on a busy machine: checking a password takes its time on purpose."""


@dataclass(frozen=True)
class Done:
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Operator:
    """Runs commands in one home folder."""

    home: Path
    issuer: str
    more: tuple[tuple[str, str], ...] = ()
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]], repr=False)

    @property
    def own(self) -> dict[str, str]:
        return {"PYEXEC_IDP_HOME": str(self.home), "PYEXEC_IDP_ISSUER": self.issuer, **CHEAP, **dict(self.more)}

    @property
    def environ(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYEXEC_")}
        return {**inherited, **self.own}

    def run(self, *words: str, stdin: str = "") -> Done:
        """Run a command in this process: the imports of each would take longer than all else."""
        result = CliRunner().invoke(root, list(words), input=stdin, env=self.own)
        if isinstance(result.exception, IdentityError):
            return Done(1, result.stdout, result.exception.message)
        return Done(result.exit_code, result.stdout, result.stderr)

    def ok(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done
        return done.stdout

    def run_alone(self, *words: str) -> Done:
        """Run a command in a process of its own."""
        done = subprocess.run(
            [PROGRAM, *words], capture_output=True, text=True, env=self.environ, timeout=COMMAND_SECONDS, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def serving(self) -> Generator["Operator"]:
        port = self.issuer.rpartition(":")[2]
        log = self.home.with_suffix(".log")
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [PROGRAM, "serve"], env={**self.environ, "PYEXEC_IDP_PORT": port}, stderr=stderr, stdout=stderr
            )
        self.processes.append(process)
        try:
            eventually(lambda: self._answers(process), 40)
            yield self
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) in {0, -signal.SIGTERM}

    @contextmanager
    def standing_still(self) -> Generator[None]:
        """Have the server answer nobody."""
        self.processes[-1].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.processes[-1].send_signal(signal.SIGCONT)

    def log(self) -> str:
        return self.home.with_suffix(".log").read_text()

    def _answers(self, process: subprocess.Popen[bytes]) -> bool:
        assert process.poll() is None, self.log()
        try:
            return httpx2.get(f"{self.issuer}/health").status_code == 200
        except httpx2.TransportError:
            return False


def operator(folder: Path, **more: str) -> Operator:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return Operator(home=folder / "idp", issuer=f"http://127.0.0.1:{port}", more=tuple(more.items()))


def click_through(authorization_url: str, decision: str = "allow") -> str:
    """Sign in and decide, as a person with a browser would; return where the browser is sent at the end."""
    with httpx2.Client(follow_redirects=True, timeout=PATIENCE_SECONDS) as browser:
        page = browser.get(authorization_url)
        for more in ({"user": "ada", "password": PASSWORD}, {"decision": decision}):
            action, fields = Forms(page.text).forms[0]
            browser.follow_redirects = "decision" not in more
            page = browser.post(action, data={**fields, **more})
        return page.headers["location"]
