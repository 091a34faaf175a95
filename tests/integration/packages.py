"""Packages for sandboxes, put together for tests: a small environment to come on top of, and an index with anything."""

import io
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyexec.domain.packages import PackageSettings
from pyexec.environments.orders import read_answer
from pyexec.environments.packages.service import Lease, PackagesAsked, PackageSets
from pyexec.environments.packages.sets import PackageSet, PackageStore
from pyexec.environments.store import Environment
from pyexec.executions.sandboxed import InSandboxes
from pyexec.storage.locks import held
from tests.integration.environments import Index, UvEngine, wheel_bytes

PRELOADED = ("baselib==2", "basedep==1")
BASE_PYTHON = "3.12"


class Packages:
    """Package sets of one engine, on top of an environment with `PRELOADED`."""

    def __init__(self, engine: UvEngine, index: Index, scratch: Path) -> None:
        way = engine.executions._submitter._in_sandboxes
        assert isinstance(way, InSandboxes)
        self.engine = engine
        self.index = index
        self.scratch = scratch
        self.environ = dict(way.environments.build_environ)
        self.store = PackageStore(engine.home / "packages")
        self.sets = way.sets
        self.base = self._make_base(way.environments)
        self.said: list[str] = []
        self._number = 0

    def with_settings(self, **settings: Any) -> PackageSets:
        """Return other package sets on the same store, as an operator sets them."""
        return PackageSets(
            store=self.store,
            uv=self.sets._uv,
            environ=self.environ,
            settings=PackageSettings(**settings),
            directory=self.engine.home,
            fresh_seconds=3600,
            prepare_seconds=60,
        )

    def lease(self) -> Lease:
        """Return a lease of somebody who is about to begin."""
        self._number += 1
        folder = self.scratch / f"holder{self._number}"
        folder.mkdir()
        return Lease(folder=folder, lock=folder / "lock")

    def get(self, *requirements: str, sets: PackageSets | None = None, owner: str = "me", **more: Any) -> PackageSet:
        """Put packages together; what is said meanwhile is in `said`."""
        self.said.clear()
        asked = PackagesAsked(requirements=requirements, owner=owner, **more)
        return (sets or self.sets).put_together(asked, self.base, self.lease(), self.said.append)

    def add(self, *requirements: str, into: Path, **more: Any) -> PackageSet:
        """Give packages to a session."""
        into.parent.mkdir(exist_ok=True)
        return self.sets.add(PackagesAsked(requirements=requirements, owner="me", into=into, **more), self.base)

    def imported(self, code: str, folder: Path | None) -> str:
        """Run code on the interpreter of the base, with a folder on its path as a sandbox has it; return its output."""
        setup = f"import sys; sys.path.append({str(folder)!r})\n"
        program = str(self.base.python.resolve())
        return subprocess.run(
            [program, "-I", "-B", "-c", setup + code], capture_output=True, text=True, check=True
        ).stdout.strip()

    def _make_base(self, environments: Any) -> Environment:
        holder = self.scratch / "base"
        holder.mkdir()
        with held(holder / "lock"):
            plan = environments.plan(
                folder=holder, holder_lock=holder / "lock", owner="me", python=BASE_PYTHON, packages=PRELOADED
            )
            subprocess.run(plan.prepare.argv, input=plan.prepare.stdin, env=self.environ, text=True, check=True)
        made = self.engine.store.get(read_answer(holder).digest or "")
        assert made is not None
        return replace(made, notes=())


@contextmanager
def packages(home: Path, index: Index, scratch: Path, **settings: object) -> Generator[Packages]:
    """Open package sets whose packages come from an index of the test's own."""
    index.add("baselib", "2")
    index.add("baselib", "3")
    index.add("basedep", "1")
    before = os.environ.get("UV_DEFAULT_INDEX")
    os.environ["UV_DEFAULT_INDEX"] = f"{index.url}/simple"
    try:
        with UvEngine(home, **settings) as engine:
            yield Packages(engine, index, scratch)
    finally:
        if before is None:
            del os.environ["UV_DEFAULT_INDEX"]
        else:
            os.environ["UV_DEFAULT_INDEX"] = before


def offer(
    index: Index,
    name: str,
    version: str = "1",
    files: Mapping[str, str | bytes] | None = None,
    requires: Collection[str] = (),
) -> None:
    """Put a wheel into an index."""
    content = wheel_bytes(name, version, files or {f"{name}.py": f"VERSION = {version!r}\n"}, requires)
    index.files[f"{name}-{version}-py3-none-any.whl"] = content


def offer_raw(index: Index, name: str, entries: Collection[tuple[zipfile.ZipInfo, str]]) -> None:
    """Put a wheel into an index that has entries as no tool writes them."""
    buffer = io.BytesIO(wheel_bytes(name, "1", {f"{name}.py": "VERSION = '1'\n"}))
    with zipfile.ZipFile(buffer, "a") as wheel:
        for entry, content in entries:
            wheel.writestr(entry, content)
    index.files[f"{name}-1-py3-none-any.whl"] = buffer.getvalue()


def offer_source(index: Index, name: str, canary: Path) -> None:
    """Put a source distribution into an index, whose build leaves a canary."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in (
            ("PKG-INFO", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"),
            ("setup.py", f"open({str(canary)!r}, 'w').close()\nfrom setuptools import setup\nsetup(name={name!r})\n"),
        ):
            entry = tarfile.TarInfo(f"{name}-1/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    index.files[f"{name}-1.tar.gz"] = buffer.getvalue()
