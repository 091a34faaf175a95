"""A container engine, where there is one: what a person would use instead of sandboxes."""

import shutil
import subprocess
import tarfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from installation import BenchmarkError

ENGINES = ("docker", "podman")
IMAGE = "pyexec-benchmark"
FOLDERS = ("usr", "bin", "lib", "lib64", "sbin", "etc")
LIMITS = ("--network=none", "--read-only", "--tmpfs=/tmp", "--memory=512m", "--pids-limit=64", "--cap-drop=ALL")
# Podman asks for more open files than some machines let it have.
ULIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000")
CALL_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Containers:
    """Runs each program in a container of its own, which sees this machine's programs and the folders it was made with.

    What is in an image and what is mounted into an empty one costs the same to start.
    """

    engine: str
    options: tuple[str, ...]

    def seconds(self, command: Sequence[str], expected: str) -> float:
        """Return how long one takes from the command to its end."""
        started = time.perf_counter()
        done = subprocess.run(
            [self.engine, "run", "--rm", *LIMITS, *ULIMITS, *self.options, IMAGE, *command],
            capture_output=True,
            text=True,
            timeout=CALL_SECONDS,
            check=False,
        )
        taken = time.perf_counter() - started
        if done.returncode != 0 or done.stdout.strip() != expected:
            raise BenchmarkError(f"{self.engine} run failed: {done.stdout[-500:]}{done.stderr[-2000:]}")
        return taken


@contextmanager
def containers(folders: Sequence[Path]) -> Generator[Containers | None]:
    """Give what runs containers that see these folders where they are, None where no engine answers."""
    engine = next((name for name in ENGINES if shutil.which(name) is not None and _answers(name)), None)
    if engine is None:
        yield None
        return
    links = [f"/{name}" for name in FOLDERS if Path(f"/{name}").is_symlink()]
    mounted = [f"/{name}" for name in FOLDERS if Path(f"/{name}").is_dir() and f"/{name}" not in links]
    options = [f"--volume={place}:{place}:ro" for place in (*mounted, *map(str, folders))]
    subprocess.run([engine, "import", "-", IMAGE], input=_nearly_empty(links), capture_output=True, check=True)
    try:
        yield Containers(engine, tuple(options))
    finally:
        subprocess.run([engine, "rmi", "--force", IMAGE], capture_output=True, check=False)


def _answers(engine: str) -> bool:
    return subprocess.run([engine, "info"], capture_output=True, timeout=CALL_SECONDS, check=False).returncode == 0


def _nearly_empty(links: Sequence[str]) -> bytes:
    """Return an image with nothing in it but the links at the top of this machine's file system."""
    written = BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for link in links:
            entry = tarfile.TarInfo(link.strip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, str(Path(link).readlink())
            archive.addfile(entry)
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(folder)
    return written.getvalue()
