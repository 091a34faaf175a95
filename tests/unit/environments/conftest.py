"""A machine made of folders: interpreters that are empty files, and a probe that knows their versions."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pyexec.environments.interpreters import InterpreterFinder

Version = tuple[int, int, int]


class Machine:
    """Folders below a temporary one, and what a probe would say about the programs in them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"HOME": str(root / "home"), "PATH": ""}
        self.versions: dict[Path, Version | None] = {}
        self.probed: list[Path] = []
        self._lock = threading.Lock()
        (root / "home").mkdir()

    def program(self, path: str, content: str = "#!/bin/sh\n") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        file.chmod(0o755)
        return file

    def python(self, path: str, version: Version | None) -> Path:
        file = self.program(path, f"#!{path}\n")
        self.versions[file] = version
        return file

    def link(self, path: str, target: Path, version: Version | None = None) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)
        self.versions[file] = version if version is not None else self.versions.get(target)
        return file

    def path(self, *folders: str) -> None:
        self.environ["PATH"] = ":".join(str(self.root / folder) for folder in folders)

    def probe(self, path: Path) -> Version | None:
        with self._lock:
            self.probed.append(path)
        return self.versions.get(path)

    def finder(self, cache_file: Path | None = None, *, own: Path | None = None) -> InterpreterFinder:
        return InterpreterFinder(self.environ, cache_file, self.probe, own=own)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    root = tmp_path / "machine"
    root.mkdir()
    return Machine(root)


Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file below the temporary folder."""

    def to(path: str, content: str | bytes) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return to
