"""A machine with uv and Pythons that are empty files, and plans for scripts on it."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyexec.environments.asking import Asked, RunPlan
from pyexec.environments.names import NamedEnvironment, NameRegister
from pyexec.environments.orders import BuildOrder
from pyexec.environments.plan import Planner
from pyexec.environments.store import Environment, EnvironmentStore, Resolution
from tests.unit.environments.conftest import Machine

OWNER = "local|1000|"
FRESH_SECONDS = 3600.0
LOCK = "pluggy==1.5.0 \\\n    --hash=sha256:00\n"


class Bench:
    """uv, Python 3.11 on PATH and 3.13 in pyenv, and a script in a folder called `work`."""

    def __init__(self, machine: Machine, tmp_path: Path) -> None:
        self.machine = machine
        self.uv = machine.program("path/uv")
        self.python = machine.python("path/python3", (3, 11, 7))
        self.newer = machine.python("home/.pyenv/versions/3.13.0/bin/python", (3, 13, 0))
        machine.path("path")
        machine.environ["UV_PYTHON_DOWNLOADS"] = "never"
        self.directory = tmp_path / "work"
        self.directory.mkdir()
        self.store = EnvironmentStore(tmp_path / "environments")
        self.store.create()
        self.names = NameRegister(self.store.root / "named")
        self.asked = Asked(
            script=Path("main.py"),
            header_source=b"",
            directory=self.directory,
            owner=OWNER,
            environ={},
            folder=tmp_path / "executions" / "1",
            holder_lock=tmp_path / "executions" / "1" / "lock",
        )

    def planner(self) -> Planner:
        return Planner(
            finder=self.machine.finder(),
            store=self.store,
            names=self.names,
            environ=self.machine.environ,
            own_prefix=self.machine.root / "own",
            own_version="3.11",
            fresh_seconds=FRESH_SECONDS,
        )

    def plan(self, **changes: Any) -> RunPlan:
        return self.planner().plan(replace(self.asked, **changes))

    def order(self, **changes: Any) -> BuildOrder:
        """Plan what has to be prepared, and return what the builder is told."""
        return order_of(self.plan(**changes))

    def make(self, digest: str, *packages: str, version: str = "3.11.7") -> Environment:
        """Put a ready environment into the store."""
        python = self.store.folder(digest) / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(self.python)
        environment = Environment(digest=digest, python=python, python_version=version, packages=packages)
        self.store.mark_ready(environment, LOCK)
        return environment

    def resolve(self, key: str | None, digest: str, *, age: float = 0.0, notes: tuple[str, ...] = ()) -> None:
        """Have a request resolved to an environment, so many seconds ago."""
        assert key is not None
        self.store.keep_resolution(key, Resolution(digest=digest, created_at=time.time() - age, notes=notes), LOCK)

    def name(self, name: str, digest: str, *, owner: str = OWNER, version: str = "3.11.7") -> NamedEnvironment:
        """Give an environment a name."""
        named = NamedEnvironment(
            name=name,
            digest=digest,
            python=str(self.python),
            python_version=version,
            dependencies=("pluggy",),
            lock=LOCK,
            created_at=5.0,
        )
        self.names.put(owner, named)
        return named

    def leases(self, digest: str) -> dict[str, str]:
        """Return who has leased an environment, and by which lock."""
        folder = self.store.root / "leases" / digest
        return {path.name: path.read_text() for path in folder.iterdir()} if folder.is_dir() else {}

    def remembered(self) -> list[str]:
        """Return what the store remembers of requests."""
        return [path.name for path in (self.store.root / "requests").iterdir()]


def order_of(plan: RunPlan) -> BuildOrder:
    """Return what the builder is told in a plan."""
    assert plan.prepare is not None
    return BuildOrder.from_json(plan.prepare.stdin)
