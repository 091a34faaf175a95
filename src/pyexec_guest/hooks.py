"""Doing something to a module once the program has imported it, without importing it for a program that does not."""

import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Patch = Callable[[Any], None]


class ImportHooks(MetaPathFinder):
    """Calls a function for each of some modules when it is imported, or at once when it has been."""

    def __init__(self) -> None:
        self._patches: dict[str, Patch] = {}
        self._finding = False

    def after(self, name: str, patch: Patch) -> None:
        """Have `patch` called with the module `name`."""
        if name in sys.modules:
            patch(sys.modules[name])
            return
        self._patches[name] = patch
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> "ModuleSpec | None":
        """Find a module as everybody else would, and watch it being loaded."""
        if fullname not in self._patches or self._finding:
            return None
        self._finding = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._finding = False
        if spec is None or spec.loader is None:
            return None
        spec.loader = _PatchingLoader(spec.loader, self._patches.pop(fullname))
        return spec


class _PatchingLoader(Loader):
    """Loads as another loader does, and patches."""

    def __init__(self, loader: Any, patch: Patch) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: ModuleSpec) -> "ModuleType | None":
        """Leave it to the other loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Have it loaded, then patch it; a patch that fails changes nothing for the program."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._patch(module)
        except Exception as error:  # noqa: BLE001 - another version than we know
            sys.stderr.write(f"pyexec does not know this version of {module.__name__}: {error!r}\n")
