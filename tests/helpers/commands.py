"""The command line, as a person or a script uses it."""

import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.helpers import forks
from tests.helpers.homes import environment

COMMAND_SECONDS = 150.0


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Command:
    """The command line in one state folder and one working directory."""

    home: Path
    directory: Path

    def __call__(self, *words: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Ran:
        """Run `pyexec WORDS` to its end."""
        done = subprocess.run(
            [*forks.pyexec(), *words],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=self.directory,
            env=environment(self.home, env),
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, stdin: str = "") -> str:
        """Run it, expect success, and return what it printed."""
        ran = self(*words, stdin=stdin)
        assert ran.status == 0, ran
        return ran.stdout

    @contextmanager
    def running(self, *words: str) -> Generator["subprocess.Popen[str]"]:
        """Start it and leave it running; at the end it must have ended."""
        process = subprocess.Popen(
            [*forks.pyexec(), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=self.directory,
            env=environment(self.home),
        )
        with process:
            try:
                yield process
                process.wait(COMMAND_SECONDS)
            finally:
                process.kill()


def line_of(stream: IO[str] | None) -> str:
    """Read one line, as soon as it is there."""
    assert stream is not None
    return stream.readline()


def rest_of(stream: IO[str] | None) -> str:
    """Read everything that is left."""
    assert stream is not None
    return stream.read()
