"""Engines, with control groups and without."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.helpers.databases import MOSTLY_SQLITE, Place, place_of
from tests.integration.engine import Engine
from tests.integration.environments import Gate, UvEngine

MakeEngine = Callable[..., Engine]
MakeUvEngine = Callable[..., UvEngine]

# Where the launcher runs in a mount namespace without the control groups, its keepers find none.
_WITHOUT_GROUPS = """\
#!/bin/sh
exec unshare --mount sh -c 'umount -l {mount} && exec "$0" "$@"' {python} "$@"
"""


@pytest.fixture
def place(state_home: Path) -> Place:
    """The state folder and where its records lie; a file overrides this that tries other databases."""
    return Place(state_home)


@pytest.fixture(params=MOSTLY_SQLITE)
def any_place(request: pytest.FixtureRequest, state_home: Path) -> Place:
    """A state folder with each kind of database."""
    return place_of(request.param, request, state_home)


@pytest.fixture
def make_engine(place: Place) -> Iterator[MakeEngine]:
    """Open engines on one state folder, as servers that run side by side."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(Engine(place.root, **place.settings(), **settings))


@pytest.fixture
def engine(make_engine: MakeEngine) -> Engine:
    """One engine."""
    return make_engine()


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of uv's own for all tests of a run, empty at first; all workers share it."""
    own = tmp_path_factory.getbasetemp()
    cache = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "uv-cache"
    cache.mkdir(exist_ok=True)
    return cache


@pytest.fixture
def make_uv_engine(state_home: Path, uv_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeUvEngine]:
    """Open engines that use uv, on a state folder of the test's own, without any environments."""
    monkeypatch.setenv("UV_CACHE_DIR", str(uv_cache))
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(UvEngine(state_home, **settings))


@pytest.fixture(scope="module")
def shared_uv_engine(module_home: Path, uv_cache: Path) -> Iterator[UvEngine]:
    """One engine that uses uv for all tests of a file, to which its environments stay."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_CACHE_DIR", str(uv_cache))
        with UvEngine(module_home) as engine:
            yield engine


@pytest.fixture
def uv_engine(shared_uv_engine: UvEngine) -> UvEngine:
    """The engine of the file, in a directory of the test's own."""
    shared_uv_engine.begin()
    return shared_uv_engine


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A local package whose build can be held up."""
    gate = Gate(tmp_path / "gate")
    yield gate
    gate.close()


def _mount_of_groups() -> str | None:
    for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] == "cgroup2":
            return fields[4]
    return None


@functools.cache
def _can_group() -> bool:
    """Try it in a process of its own, as a keeper does."""
    code = (
        "from pyexec_guest.keeper import cgroup\n"
        "import os\ngroup = cgroup.create_and_enter(f'pyexec-tests-{os.getpid()}')\n"
        "if group is None: raise SystemExit(1)\n"
        "cgroup.leave(group)\n"
        "cgroup.remove(group)\n"
    )
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture(params=["groups", "descent"])
def way(request: pytest.FixtureRequest) -> str:
    """How the keeper knows what a program has started: by its control group, or by descent alone."""
    way: str = request.param
    if way == "groups" and not _can_group():
        pytest.skip("no control group (cgroup v2) can be made here")
    return way


@pytest.fixture
def engine_by(way: str, make_engine: MakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine whose keepers know their processes in each of the two ways."""
    engine = make_engine()
    mount = _mount_of_groups()
    if way == "descent" and mount is not None and _can_group():
        if subprocess.run(["unshare", "--mount", "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            pytest.skip("control groups can be made here, and not hidden from the keeper")
        python = tmp_path / "python"
        python.write_text(_WITHOUT_GROUPS.format(mount=mount, python=sys.executable))
        python.chmod(0o755)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", str(python))
            engine.services.launcher.warm()
    return engine
