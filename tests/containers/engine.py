"""A container engine by its command line: docker, or podman, which takes the same words."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.helpers.processes import eventually

ROOT = Path(__file__).parents[2]
ENGINE, BASE = "CONTAINER_ENGINE", "PYTHON_IMAGE"
BUILD_SECONDS = 900
COMMAND_SECONDS = 120


@dataclass
class Engine:
    """Builds images from what git knows of this repository, and runs them on the machine's own network."""

    words: Sequence[str]
    images: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def is_podman(self) -> bool:
        return "podman" in self.words[0]

    @property
    def whole_proc(self) -> str:
        """The option under which nothing of /proc is hidden."""
        return f"--security-opt={'unmask=ALL' if self.is_podman else 'systempaths=unconfined'}"

    def run(self, *words: str, stdin: str = "", seconds: float = COMMAND_SECONDS) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.words, *words], input=stdin, capture_output=True, text=True, timeout=seconds, check=False
        )

    def ok(self, *words: str, stdin: str = "", seconds: float = COMMAND_SECONDS) -> str:
        done = self.run(*words, stdin=stdin, seconds=seconds)
        assert done.returncode == 0, f"{shlex.join(words)}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout

    def image(self, name: str) -> str:
        """Return the image of deploy/<name>, built when it is first asked for."""
        if name not in self.images:
            base = os.environ.get(BASE)
            more = ("--build-arg", f"PYTHON_IMAGE={base}") if base else ()
            tag = f"pyexec-test-{name}"
            with tempfile.TemporaryDirectory(prefix="pyexec-context-") as context:
                _copy_sources(Path(context))
                file = f"{context}/deploy/{name}/Containerfile"
                self.ok("build", "--network=host", *more, "--tag", tag, "--file", file, context, seconds=BUILD_SECONDS)
            self.images[name] = tag
        return self.images[name]

    def once(self, image: str, *words: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run a command in a container of its own, without network."""
        return self.run("run", "--rm", "--network=none", *self._limits(), *options, image, *words)

    @contextmanager
    def serving(self, image: str, *words: str, options: Sequence[str] = ()) -> "Generator[Container]":
        made = self.ok("run", "--detach", "--network=host", *self._limits(), *options, image, *words).strip()
        container = Container(self, made)
        try:
            yield container
        finally:
            self.run("rm", "--force", "--volumes", made)

    def forget(self) -> None:
        """Remove what was built."""
        for tag in self.images.values():
            self.run("rmi", "--force", tag)

    def _limits(self) -> Sequence[str]:
        # Podman asks for more than some machines let it have.
        return ("--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096") if self.is_podman else ()


@dataclass(frozen=True)
class Container:
    """One that runs."""

    engine: Engine
    id: str

    def ok(self, *words: str, stdin: str = "") -> str:
        return self.engine.ok("exec", "--interactive", self.id, *words, stdin=stdin)

    def said(self) -> str:
        done = self.engine.run("logs", self.id)
        return done.stdout + done.stderr

    def wait_until_healthy(self) -> None:
        """Wait until the image's own check says so."""
        check = self.engine.ok("inspect", "--format", "{{json .Config.Healthcheck.Test}}", self.id)
        assert check.startswith('["CMD"'), check
        eventually(self._is_healthy, 60)

    def _is_healthy(self) -> bool:
        found = self.engine.ok("inspect", "--format", "{{.State.Running}} {{.State.Health.Status}}", self.id).split()
        assert found[0] == "true", self.said()
        return found[1] == "healthy"


def find_engine() -> Engine | None:
    """Return the one that is named, else the first that answers."""
    named = os.environ.get(ENGINE)
    for words in [shlex.split(named)] if named else [["docker"], ["podman"]]:
        if shutil.which(words[0]) is None:
            continue
        found = Engine(words)
        if found.run("info").returncode == 0:
            return found
    return None


def _copy_sources(context: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, context / name)
