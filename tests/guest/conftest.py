import fcntl
import hashlib
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.guest.guests import Guest
from tests.helpers.homes import UV

PACKAGES = ("ipython", "numpy", "pandas", "polars", "matplotlib", "pillow", "plotly", "altair")


def make_environment(folder: Path, packages: tuple[str, ...]) -> Path:
    """Make an environment, once for all workers and all runs; return its interpreter."""
    name = hashlib.sha256(repr((sys.version, packages)).encode()).hexdigest()[:12]
    target = folder / name
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "ready").exists():
            python = target / "bin" / "python"
            subprocess.run([UV, "venv", "--quiet", "--clear", "--python", sys.executable, target], check=True)
            subprocess.run([UV, "pip", "install", "--quiet", "--python", python, *packages], check=True)
            (target / "ready").touch()
    return target / "bin" / "python"


@pytest.fixture(scope="session")
def guest_python(request: pytest.FixtureRequest) -> Path:
    """The interpreter of an environment with what people plot and compute with."""
    assert request.config.cache is not None
    return make_environment(request.config.cache.mkdir("guest"), PACKAGES)


@pytest.fixture(scope="module")
def guest(guest_python: Path) -> Generator[Guest]:
    """A guest that the tests of a module share: each leaves it usable."""
    started = Guest(guest_python)
    yield started
    started.close()


@pytest.fixture
def new_guest(guest_python: Path) -> Generator[Callable[[], Guest]]:
    """Starts guests of a test's own."""
    started: list[Guest] = []

    def start() -> Guest:
        started.append(Guest(guest_python))
        return started[-1]

    yield start
    for one in started:
        one.close()
