"""Measures a program: `python .../main.py MODE FILE [ARGS]` runs FILE as `python FILE [ARGS]` would.

Stands alone until the program's own imports are out of the way: neither what we import ourselves nor what a profiler
brings along may become visible to the program, or take the place of a module of its own.
"""

import os
import sys

TOOLS = "PYEXEC_TOOLS"
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_OURS = "pyexec_guest"
_STDLIB = os.path.dirname(os.__file__)


class Aside:
    """Modules that are there while we work with them, and out of the program's sight while it runs.

    Inside `with aside.seeing(folder):` imports come from the standard library and that folder alone. Afterwards
    `sys.modules` has gained only those modules that the program would have found at the same place.
    """

    def __init__(self) -> None:
        self._kept: dict[str, object] = {}
        self._path: list[str] = []
        self._program: dict[str, object] = {}
        self._folder = ""

    def seeing(self, folder: str) -> "Aside":
        """Say where modules come from."""
        self._folder = folder
        return self

    def __enter__(self) -> None:
        self._path = sys.path[:]
        self._program = dict(sys.modules)
        for name in [name for name, module in self._program.items() if _is_foreign(name, module)]:
            del sys.modules[name]
        sys.modules.update(self._kept)  # pyright: ignore[reportArgumentType, reportCallIssue] -- they are modules
        sys.path[:] = [path for path in self._path if _is_stdlib(path)]
        if self._folder:
            sys.path.append(self._folder)

    def __exit__(self, *_error: object) -> None:
        sys.path[:] = self._path
        ours = {name: module for name, module in sys.modules.items() if self._program.get(name) is not module}
        hidden = {root for root in {name.partition(".")[0] for name in ours} if self._is_hidden(root)}
        for name, module in ours.items():
            if name.partition(".")[0] in hidden:
                self._kept[name] = module
                del sys.modules[name]
        sys.modules.update(self._program)  # pyright: ignore[reportArgumentType, reportCallIssue] -- they are modules

    def _is_hidden(self, root: str) -> bool:
        """Tell whether the program would find something else by that name, or nothing."""
        if root in self._kept or root == _OURS:
            return True
        if root in self._program:  # We imported another part of a package that it has already.
            return sys.modules.get(root) is not self._program[root]
        spec = getattr(sys.modules.get(root), "__spec__", None)
        for finder in sys.meta_path:
            # Before Python 3.12 there were finders of an older kind; they come after those that have one.
            found = finder.find_spec(root, None) if hasattr(finder, "find_spec") else None
            if found is not None:
                return spec is None or found.origin != spec.origin
        return True


def _is_stdlib(path: str) -> bool:
    return path in (_STDLIB, os.path.join(_STDLIB, "lib-dynload"))


def _is_foreign(name: str, module: object) -> bool:
    file = getattr(module, "__file__", None)
    if name == "__main__" or not isinstance(file, str):
        return False
    below = file[len(_STDLIB) :] if file.startswith(_STDLIB + os.sep) else ""
    return not below or "-packages" in below


def main() -> None:
    """Do it."""
    mode, script = sys.argv[1:3]
    sys.argv[:] = sys.argv[2:]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    aside = Aside()
    with aside.seeing(_PACKAGES):
        runner = __import__("pyexec_guest.profiler.runner", fromlist=["run"])
    runner.run(aside, mode, script, os.path.realpath(os.environ[TOOLS]) if TOOLS in os.environ else "")


if __name__ == "__main__":
    main()
